"""The version of how the code computes results, and the settings of Spark that results depend on.

A batch is a function of its plan only if the same code and the same Spark compute it. The plan names the version; if a
batch may be published in part, only the same version may complete it.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.core.errors import ConfigError

SEMANTICS = 1
"""Raise it with every change that gives a record or an expression another result; `tests/golden` finds such changes."""

_FALSE_BY_DEFAULT = """
    ansi.doubleQuotedIdentifiers ansi.enforceReservedKeywords caseSensitive collation.allowInMapKeys
    files.ignoreCorruptFiles files.ignoreMissingFiles function.concatBinaryAsString function.eltOutputAsString
    legacy.allowHashOnMapType legacy.allowNegativeScaleOfDecimal legacy.allowNullComparisonResultInArraySort
    legacy.allowParameterlessCount legacy.allowStarWithSingleTableIdentifierInCount
    legacy.allowZeroIndexInFormatString legacy.bangEqualsNot legacy.castComplexTypesToString.enabled
    legacy.charVarcharAsString legacy.codingErrorAction legacy.collationAwareHashFunctions
    legacy.consecutiveStringLiterals.enabled legacy.createEmptyCollectionUsingStringType
    legacy.decimal.retainFractionDigitsOnTruncate legacy.disableMapKeyNormalization legacy.doLooseUpcast
    legacy.duplicateBetweenInput legacy.exponentLiteralAsDecimal.enabled legacy.fromDayTimeString.enabled
    legacy.inSubqueryNullability legacy.integerGroupingId legacy.interval.enabled legacy.javaCharsets
    legacy.json.allowEmptyString.enabled legacy.lpadRpadAlwaysReturnString legacy.negativeIndexInArrayInsert
    legacy.noCharPaddingInPredicate legacy.parser.havingWithoutGroupByAsWhere legacy.percentileDiscCalculation
    legacy.scalarSubqueryCountBugBehavior legacy.setopsPrecedence.enabled legacy.statisticalAggregate
    legacy.truncateForEmptyRegexSplit legacy.typeCoercion.datetimeToString.enabled parquet.binaryAsString
    parquet.int96TimestampConversion parser.escapedStringLiterals parser.quotedRegexColumnNames
    variable.substitute variant.allowDuplicateKeys
"""
_TRUE_BY_DEFAULT = """
    ansi.enabled decimalOperations.allowPrecisionLoss groupByAliases groupByOrdinal json.enableExactStringParsing
    json.enablePartialResults jsonGenerator.ignoreNullFields legacy.followThreeValuedLogicInArrayExists
    legacy.histogramNumericPropagateInputType legacy.literal.pickMinimumPrecision legacy.sizeOfNull orderByOrdinal
    parquet.int96AsTimestamp variant.validateUnicodeInJsonParsing
"""

PINNED: Mapping[str, str] = {
    **{f"spark.sql.{name}": "false" for name in _FALSE_BY_DEFAULT.split()},
    **{f"spark.sql.{name}": "true" for name in _TRUE_BY_DEFAULT.split()},
    "spark.sql.legacy.ctePrecedencePolicy": "CORRECTED",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
}
"""Settings that change the result of an expression or leave records out, with the values that every session has."""


def check_pinned(conf: Mapping[str, str], where: str) -> None:
    """Refuse settings with which one plan could give different rows in different places.

    Raises:
        ConfigError: `conf` gives a pinned setting another value; `where` says where `conf` comes from.
    """
    pinned = {name.lower(): (name, value) for name, value in PINNED.items()}
    for key, found in conf.items():
        name, value = pinned.get(key.lower(), ("", ""))
        if name and found.strip().lower() != value.lower():
            raise ConfigError(
                f"{where} {name}: found {found}, but one plan must give the same rows everywhere: expected {value}",
                fix="leave it out; say in the expression what is meant, for example with try_cast or to_utc_timestamp",
            )


def version_of(planned: int | None) -> int:
    """The version that a plan names; older plans name none and count as version 1."""
    return planned or 1


def is_ours(planned: int | None) -> bool:
    """Whether this code has the version that a plan names."""
    return version_of(planned) == SEMANTICS
