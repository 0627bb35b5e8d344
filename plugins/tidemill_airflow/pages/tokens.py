"""Forms that only the user who got the page can send.

Airflow's cookie goes with every request that a browser sends to it, also with one that another site makes. So a form
carries a token, signed for its user and its pipeline, which another site cannot read; and a request that says that it
comes from another site is refused.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import HTTPException, Request, status
from itsdangerous import BadSignature, SignatureExpired, URLSafeTimedSerializer

from tidemill_airflow.pages.access import Visit

FIELD = "token"
LIFETIME = 12 * 60 * 60
"""Seconds for which a page may stay open before its forms are sent."""


def token_of(visit: Visit) -> str:
    """The token for the forms of a page."""
    return _signer(visit).dumps([visit.name, visit.dag_id])


def check_form(request: Request, visit: Visit, token: str) -> None:
    """Refuse a form that was not sent from a page that this user got.

    Raises:
        HTTPException: 403.
    """
    origin = request.headers.get("origin")
    own = {request.headers.get("host", ""), *visit.access.hosts()}
    if origin is not None and urlsplit(origin).netloc not in own:
        raise _refused("it comes from another site")
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise _refused("it comes from another site")
    try:
        signed = _signer(visit).loads(token, max_age=LIFETIME)
    except SignatureExpired:
        raise _refused("its page was open for too long") from None
    except BadSignature:
        raise _refused("it has no valid token") from None
    if signed != [visit.name, visit.dag_id]:
        raise _refused("its token is of another user or pipeline")


def _signer(visit: Visit) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(visit.access.secret(), salt="tidemill pages")


def _refused(why: str) -> HTTPException:
    return HTTPException(status.HTTP_403_FORBIDDEN, f"The form was refused: {why}. Load the page again, and send it")
