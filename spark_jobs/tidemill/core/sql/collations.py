"""Which collations Spark has."""

from __future__ import annotations

_OWN = ("utf8_binary", "utf8_lcase")
_LOCALES_TEXT = """
    unicode af am ar ar_sau as az be bg blo bn bo br bs bs_cyrl ca ceb chr cs cy da de de_aut dsb dz ee el en en_usa eo
    es et fa fa_afg ff ff_adlm fi fil fo fr fr_can fy ga gl gu ha haw he he_isr hi hr hsb hu hy id id_idn ig is it ja ka
    kk kk_arab kl km kn ko kok ku ky lb lij lkt ln lo lt lv mk ml mn mr ms mt my nb nb_nor ne nl nn no nso om or pa
    pa_guru pa_guru_ind pl ps pt ro ru sa se si sk sl smn sq sr sr_cyrl sr_cyrl_bih sr_cyrl_mne sr_cyrl_srb sr_latn
    sr_latn_bih sr_latn_srb st sv sw ta te th tk tn to tr ug uk ur uz vi wae wo xh yi yo zh zh_hans zh_hans_chn
    zh_hans_sgp zh_hant zh_hant_hkg zh_hant_mac zh_hant_twn zu
"""
_LOCALES = frozenset(_LOCALES_TEXT.split())
_KINDS = ({"cs", "ci"}, {"as", "ai"}, {"rtrim"})
_PREFIX = ("system", "builtin")


def fault_of_collation(name: str) -> str:
    """Why Spark has no such collation; empty if it has. A name may begin with `system.builtin.`."""
    *before, last = name.lower().split(".")
    if (not before or tuple(before) == _PREFIX) and _is_known(last):
        return ""
    return (
        f"there is no collation `{name}`; there are UTF8_BINARY, UTF8_LCASE, UNICODE and languages such as de, "
        "with _CI, _AI or _RTRIM behind them"
    )


def _is_known(name: str) -> bool:
    if name.removesuffix("_rtrim") in _OWN:
        return True
    words = name.split("_")
    kinds: list[str] = []
    while len(words) > 1 and any(words[-1] in kind for kind in _KINDS) and "_".join(words) not in _LOCALES:
        kinds.append(words.pop())
    return "_".join(words) in _LOCALES and all(
        len(kind.intersection(kinds)) == sum(k in kind for k in kinds) <= 1 for kind in _KINDS
    )
