"""The Open Data Contract Standard, versions 3.1.0 and 3.2.0: its sections and their keys.

Source: the JSON schemas `odcs-json-schema-v3.1.0.json` and `-v3.2.0.json` of bitol-io/open-data-contract-standard.
This module holds only the keys; other modules give them a meaning.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.contracts.shapes import Either, Kind, ListOf, Part, Section, Shape

VERSIONS = ("v3.1.0", "v3.2.0")
"""The versions that Tidemill can read."""

OPERATORS = (
    "mustBe",
    "mustNotBe",
    "mustBeGreaterThan",
    "mustBeGreaterOrEqualTo",
    "mustBeLessThan",
    "mustBeLessOrEqualTo",
    "mustBeBetween",
    "mustNotBeBetween",
)
"""The operators that compare a metric with numbers."""

_V32 = "v3.2.0"
_CONTEXT = Either((Kind.TEXT, Kind.MAPPING))


def _all(names: str, shape: Shape) -> dict[str, Shape]:
    return dict.fromkeys(names.split(), shape)


def _texts(names: str) -> dict[str, Shape]:
    return _all(names, Kind.TEXT)


_SHARED: Mapping[str, Shape] = {
    "authoritativeDefinitions": ListOf(Part("authoritativeDefinition")),
    "customProperties": ListOf(Part("customProperty")),
}
_TAGGED: Mapping[str, Shape] = {**_SHARED, "tags": ListOf(Kind.TEXT)}
_ELEMENT: Mapping[str, Shape] = {
    **_TAGGED,
    **_texts("id name physicalType description businessName logicalType physicalName"),
    "deprecated": Kind.FLAG,
    "synonyms": ListOf(Part("synonym")),
    "quality": ListOf(Part("quality")),
    "relationships": ListOf(Kind.MAPPING),
    "properties": ListOf(Part("property")),
}
_ITEM: Mapping[str, Shape] = {
    **_ELEMENT,
    **_texts("semanticType classification encryptedName transformLogic transformDescription"),
    **_all("primaryKey required unique partitioned criticalDataElement", Kind.FLAG),
    **_all("primaryKeyPosition partitionKeyPosition", Kind.WHOLE),
    "logicalTypeOptions": Kind.MAPPING,
    "transformSourceObjects": ListOf(Kind.TEXT),
    "examples": ListOf(Kind.ANY),
    "enum": ListOf(Part("enumValue")),
    "items": Part("item"),
    "map": Kind.MAPPING,
}
_NEW_IN_ELEMENT = dict.fromkeys(("deprecated", "synonyms", "context", "semanticType", "enum", "map"), _V32)

_TOP: Mapping[str, Shape] = {
    **_TAGGED,
    **_texts("version kind apiVersion id name tenant status dataProduct domain slaDefaultElement contractCreatedTs"),
    "servers": ListOf(Part("server")),
    "description": Part("description"),
    "schema": ListOf(Part("object")),
    "support": ListOf(Part("supportChannel")),
    "price": Part("price"),
    "team": Either((Part("team"), ListOf(Part("teamMember")))),
    "roles": ListOf(Part("role")),
    "slaProperties": ListOf(Part("slaProperty")),
    "context": _CONTEXT,
}
_QUALITY: Mapping[str, Shape] = {
    **_TAGGED,
    **_texts("id businessImpact description dimension method name schedule scheduler severity type unit metric rule"),
    **_texts("query engine"),
    **_all(" ".join(OPERATORS), Kind.NUMBER),
    "mustBe": Kind.ANY,
    "mustNotBe": Kind.ANY,
    "mustBeBetween": ListOf(Kind.NUMBER),
    "mustNotBeBetween": ListOf(Kind.NUMBER),
    "arguments": Kind.MAPPING,
    "implementation": Either((Kind.TEXT, Kind.MAPPING)),
}
_SERVER = """
    account catalog catalogUrl database dataset delimiter encoding endpointUrl format host location namespace path
    port project region regionName schema serviceName stagingDir stream warehouse workgroup
"""
_SLA = "id unit element driver description scheduler schedule property"
_MEMBER = "id username name description role dateIn dateOut replacedByUsername"

SECTIONS: Mapping[str, Section] = {
    "contract": Section(
        title="a contract",
        keys=_TOP,
        required=("version", "kind", "id", "schema"),
        since={"context": _V32},
    ),
    "object": Section(
        title="a schema object",
        keys={**_ELEMENT, "dataGranularityDescription": Kind.TEXT, "context": _CONTEXT},
        required=("name", "properties"),
        since=_NEW_IN_ELEMENT,
    ),
    "property": Section(title="a property", keys=_ITEM, required=("name",), since=_NEW_IN_ELEMENT),
    "item": Section(title="the items of an array", keys=_ITEM, since=_NEW_IN_ELEMENT),
    "quality": Section(title="a quality rule", keys=_QUALITY),
    "enumValue": Section(
        title="a value of an enum",
        keys={**_TAGGED, **_texts("label id description"), "value": Kind.PLAIN},
        required=("value",),
    ),
    "synonym": Section(
        title="a synonym",
        keys={**_SHARED, **_texts("id synonym description locale source status")},
        required=("synonym",),
    ),
    "customProperty": Section(
        title="a custom property",
        keys={**_texts("id property description vendor"), "value": Kind.ANY},
        required=("property", "value"),
        since={"vendor": _V32},
    ),
    "authoritativeDefinition": Section(
        title="an authoritative definition", keys=_texts("id url type description"), required=("url", "type")
    ),
    "description": Section(title="a description", keys={**_SHARED, **_texts("usage purpose limitations")}),
    "server": Section(
        title="a server",
        keys={
            **_SHARED,
            **_texts("id server type description environment"),
            "roles": ListOf(Part("role")),
            **_all(_SERVER, Kind.PLAIN),
        },
        required=("server", "type"),
    ),
    "supportChannel": Section(
        title="a support channel",
        keys={**_SHARED, **_texts("id channel url description tool scope invitationUrl")},
        required=("channel",),
    ),
    "price": Section(title="a price", keys={"priceAmount": Kind.NUMBER, **_texts("id priceCurrency priceUnit")}),
    "teamMember": Section(title="a team member", keys={**_TAGGED, **_texts(_MEMBER)}, required=("username",)),
    "team": Section(
        title="a team",
        keys={**_TAGGED, **_texts("id name description"), "members": ListOf(Part("teamMember"))},
    ),
    "role": Section(
        title="a role",
        keys={**_SHARED, **_texts("id role description access firstLevelApprovers secondLevelApprovers")},
        required=("role",),
    ),
    "slaProperty": Section(
        title="an SLA property",
        keys={**_SHARED, **_texts(_SLA), "value": Kind.PLAIN, "valueExt": Kind.PLAIN},
        required=("property", "value"),
    ),
}
"""Every section of the standard that Tidemill reads or ignores, under a name of Tidemill's own."""
