"""Secrets made up at run time, and the places of a session that they are planted in."""

from __future__ import annotations

import base64
import json
import random
import textwrap
import tomllib
from collections.abc import Callable, Iterator
from importlib.resources import files

from tests.tools.regex_samples import sample_of

_ALNUM = "[A-Za-z0-9]"
_LONG = f"{_ALNUM}{{8}}[0-9][a-z][0-9][A-Z]{_ALNUM}{{28}}"

# how services' documentation and SDKs show them; of other places than the forms that are tested
_DOCUMENTED = {
    "anthropic": "sk-ant-api03-[A-Za-z0-9_-]{93}AA",
    "openai": "sk-proj-[A-Za-z0-9_-]{74}T3BlbkFJ[A-Za-z0-9_-]{74}",
    "openai, old": f"sk-{_ALNUM}{{20}}T3BlbkFJ{_ALNUM}{{20}}",
    "openrouter": "sk-or-v1-[a-f0-9]{64}",
    "groq": f"gsk_{_ALNUM}{{52}}",
    "xai": f"xai-{_ALNUM}{{80}}",
    "replicate": f"r8_{_ALNUM}{{37}}",
    "perplexity": f"pplx-{_ALNUM}{{48}}",
    "sendgrid": "SG[.][A-Za-z0-9_-]{22}[.][A-Za-z0-9_-]{43}",
    "digitalocean": "dop_v1_[a-f0-9]{64}",
    "databricks": "dapi[a-f0-9]{32}",
    "shopify": "shpat_[a-f0-9]{32}",
    "linear": f"lin_api_{_ALNUM}{{40}}",
    "supabase": "sbp_[a-f0-9]{40}",
    "vault": "hvs[.][A-Za-z0-9_-]{90}",
    "age": "AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}",
    "langsmith": "lsv2_pt_[a-f0-9]{32}_[a-f0-9]{10}",
    "docker": "dckr_pat_[A-Za-z0-9_-]{27}",
    "slack": f"xoxb-[0-9]{{12}}-[0-9]{{12}}-{_ALNUM}{{24}}",
    "slack webhook": f"https://hooks[.]slack[.]com/services/T[A-Z0-9]{{8}}/B[A-Z0-9]{{8}}/{_ALNUM}{{24}}",
    "stripe": f"sk_test_{_ALNUM}{{24}}",
    "stripe webhook": f"whsec_{_ALNUM}{{32}}",
    "gitlab runner": "glrt-[A-Za-z0-9_-]{20}",
    "github": f"ghp_{_ALNUM}{{36}}",
    "aws": "AKIA[A-Z2-7]{16}",
    "google": "AIza[A-Za-z0-9_-]{35}",
    "telegram": "[0-9]{10}:AA[A-Za-z0-9_-]{33}",
    "jwt": "eyJhbGciOiJIUzI1NiJ9[.]eyJ[A-Za-z0-9_-]{40}[.][A-Za-z0-9_-]{43}",
}

# what is in front of a secret, the secret, and what follows it
_NAMED = {
    "Authorization: Bearer": ("Authorization: Bearer ", _LONG, ""),
    "Authorization: Basic": ("Authorization: Basic ", _LONG + "==", ""),
    "Authorization: token": ('"Authorization": "token ', _LONG, '"'),
    "x-api-key": ("x-api-key: ", _LONG, ""),
    "aws_secret_access_key": ("aws_secret_access_key = ", _LONG, ""),
    "AWS_SECRET_ACCESS_KEY": ("AWS_SECRET_ACCESS_KEY=", _LONG, ""),
    "MISTRAL_API_KEY": ("MISTRAL_API_KEY=", _LONG, ""),
    "export": ('export COHERE_API_KEY="', _LONG, '"'),
    "apiKey": ('{"apiKey": "', _LONG, '"}'),
    "yaml": ("api_token: '", _LONG, "'"),
    "client_secret": ("client_secret => '", _LONG, "'"),
    "DB_PASSWORD": ("DB_PASSWORD=", "[a-z]{4}[0-9][A-Z][0-9][a-z]{3}[0-9]{2}[A-Z]{3}", ""),
    "AccountKey": ("DefaultEndpointsProtocol=https;AccountName=a;AccountKey=", f"{_ALNUM}{{86}}==", ";"),
    "SharedAccessKey": ("Endpoint=sb://a/;SharedAccessKeyName=n;SharedAccessKey=", f"{_ALNUM}{{43}}=", ""),
    "SAS": ("https://a.blob.core.windows.net/c?sv=2024&sig=", f"{_ALNUM}{{43}}%3D", ""),
    "postgres": ("postgres://app:", "[a-z]{4}[0-9]{4}[A-Z]{4}", "@db.internal:5432/app"),
    "redis": ("redis://:", "[a-z]{4}[0-9]{4}[A-Z]{4}", "@cache:6379"),
    "mongodb": ("mongodb+srv://app:", "[a-z]{4}[0-9]{4}[A-Z]{4}", "@c0.mongodb.net"),
    "sql server": ("Server=db;User Id=app;Password=", "[a-z]{4}[0-9]{4}[A-Z]{4}", ";Encrypt=true"),
}


def _numbered(text: str, between: str) -> str:
    return "\n".join(f"{number:6}{between}{line}" for number, line in enumerate(text.split("\n"), 9))


SURROUNDINGS: dict[str, Callable[[str], str]] = {
    "after a blank": lambda text: f"it is {text} now",
    "at a line's start": lambda text: f"$ cat it\n{text}\n$ ls",
    "after CRLF": lambda text: f"first\r\n{text}\r\nlast",
    "after a tab": lambda text: f"name\t{text}\tx",
    "in code marks": lambda text: f"it is `{text}` now",
    "bold": lambda text: f"- **it**: **{text}**",
    "in a table": lambda text: f"| it |{text}| x |",
    "line numbers": lambda text: _numbered(f"# it\n{text}\n", "\u2192"),
    "line numbers and tabs": lambda text: _numbered(f"# it\n{text}\n", "\t"),
    "grep": lambda text: "\n".join(f"a/.env:{number}:{line}" for number, line in enumerate(text.split("\n"), 3)),
    "coloured": lambda text: f"\x1b[01;32m{text}\x1b[0m",
    "coloured by grep": lambda text: "\n".join([f"\x1b[01;31m\x1b[K{line}\x1b[m\x1b[K" for line in text.split("\n")]),
    "coloured by git": lambda text: "\n".join([f"\x1b[32m+\x1b[m\x1b[32m{line}\x1b[m" for line in text.split("\n")]),
    "twice in a diff": lambda text: "\n".join([sign + line for sign in "-+" for line in text.split("\n")]),
    "after a colon": lambda text: f"value:{text}",
    "bytes in Python": lambda text: repr(text.encode()),
    "a diff": lambda text: "@@ -1 +1 @@\n" + "\n".join(f"+{line}" for line in text.split("\n")),
    "quoted": lambda text: f"'{text}'",
    "JSON in a string": lambda text: json.dumps({"output": f"first\n{text}\nlast"}),
    "indented": lambda text: textwrap.indent(f"it:\n{text}\n", "    "),
}


def planted(chance: random.Random) -> Iterator[tuple[str, str, list[str]]]:
    """Yield kinds of secrets: the name of one, a string that has it, and the parts that must not be left."""
    forms = files("interlingua_transcripts").joinpath("secret_forms.toml").read_text(encoding="utf-8")
    for name, form in tomllib.loads(forms).items():
        for start in form["starts"]:
            front = sample_of(form["front"], chance) if "front" in form else ""
            rest = sample_of(form["rest"], chance)
            kept = front + start if form.get("keep") else ""
            yield f"{name} ({start})", front + start + rest, [rest if kept else front + start + rest]
    for name, pattern in _DOCUMENTED.items():
        made = sample_of(pattern, chance)
        yield name, made, [made.removeprefix("https://")]
    for name, (front, pattern, end) in _NAMED.items():
        made = sample_of(pattern, chance)
        yield name, f"{front}{made}{end}", [made]
    for kind in ("", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "):
        lines = textwrap.wrap(base64.b64encode(chance.randbytes(900 + len(kind))).decode(), 64)
        begin, end = (f"-----{word} {kind}PRIVATE KEY-----" for word in ("BEGIN", "END"))
        yield f"{kind}key", "\n".join([begin, *lines, end]), lines
        yield f"{kind}key, its end cut", "\n".join([begin, *lines]), lines
        yield f"{kind}key, its beginning cut", "\n".join([*lines, end]), lines
        yield f"{kind}key on one line", "\\n".join([begin, *lines, end]), lines
