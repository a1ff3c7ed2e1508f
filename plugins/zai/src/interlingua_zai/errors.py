"""Business codes of failed answers and the error class each stands for (sheet zai §5).

Never reads a body: the table only. The code decides, not the status: a 429 may be an empty account.
The dialect comes in.
"""

from __future__ import annotations

_CODES: dict[str, tuple[int, ...]] = {
    "AuthenticationError": (1000, 1001, 1002, 1003, 1004),
    "PermissionDeniedError": (1110, 1111, 1112, 1121, 1220, 1311),  # account inactive, missing, locked; model not in plan
    "QuotaExceededError": (1113, 1304, 1308, 1309, 1310, 1313),  # arrears, quotas, plan expired, fair use
    "BadRequestError": (1210, 1212, 1213, 1214, 1215, 1221, 1222, 1231),
    "ModelNotFoundError": (1211,),
    "ServerError": (1120, 1230, 1234),  # for the moment, so worth another try
    "ContextWindowExceededError": (1261,),
    "ContentRefusedError": (1300, 1301),
    "RateLimitError": (1302, 1303, 1305),
    "OverloadedError": (1312,),
}
BUSINESS_CODES: dict[str, str] = {str(code): name for name, codes in _CODES.items() for code in codes}
BUSINESS_CODES["status 434"] = "PermissionDeniedError"  # without a code
