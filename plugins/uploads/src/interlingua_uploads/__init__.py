"""Large media for interlingua: uploaded once, referred to by id, uploaded again when expired, deleted on request."""

from interlingua_uploads.uploads import UploadedFile, Uploads

__all__ = ["UploadedFile", "Uploads"]
