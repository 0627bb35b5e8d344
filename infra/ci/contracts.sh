#!/usr/bin/env bash
# Lint the contracts of a project, and say what they break since an earlier revision. Ends with 1 if something is wrong.
#
#   PROJECT    the project's folder; by default the working directory
#   BASE       the revision of git to compare with; without one, contracts are only linted
#   FORMAT     text, json, github, junit or sarif
#   OUT        the folder for reports, one file for each command: contract-lint and contract-diff, with the ending .xml
#              for junit, .sarif, .jsonl for json, or .txt. By default they go to standard output, but for junit and
#              sarif, of which one output holds only one document
#   FAIL_ON    error, warning, or what changes must not break, such as readers,writers: as `contract diff --fail-on`
#   TABLES     1 also plans the next batch of each pipeline, and writes nothing: what published tables would lose. It
#              needs the log and the lake. What it says goes to standard error
set -uo pipefail

project=${PROJECT:-.}
base=${BASE:-}
format=${FORMAT:-text}
out=${OUT:-}
options=(--format "$format")
fail_on=${FAIL_ON:-error}
# What changes break is nothing to lint: it knows errors and warnings.
lint_on=error
[[ ,${fail_on// /}, != *,warning,* ]] || lint_on=warning
status=0

case $format in
    junit) ending=xml ;;
    json) ending=jsonl ;;
    sarif) ending=sarif ;;
    *) ending=txt ;;
esac
if [[ -z $out && ($format == junit || $format == sarif) ]]; then
    echo "FORMAT=$format needs OUT: each command writes a document, and one output holds only one" >&2
    echo "  fix: OUT=reports, and let your system of CI read reports/*.$ending" >&2
    exit 1
fi
if [[ -n $out ]]; then
    mkdir -p "$out" || exit 1
    rm -f "$out"/contract-{lint,diff}."$ending"
fi

# Run `tidemill contract NAME ...`, with the report where it belongs.
contract() {
    if [[ -z $out ]]; then
        tidemill --project "$project" contract "$@" "${options[@]}"
        return
    fi
    local code=0 file=$out/contract-$1.$ending
    tidemill --project "$project" contract "$@" "${options[@]}" >"$file" || code=$?
    # A command that could not begin says why on standard error, and writes no report.
    if [[ -s $file || $code == 0 ]]; then echo "contract $1: $file" >&2; else rm -f "$file"; fi
    return "$code"
}

contract lint --fail-on "$lint_on" || status=1

# Where a branch is new, GitHub and GitLab name a revision of zeros only.
if [[ -n ${base//0/} ]]; then
    known() { git -C "$project" cat-file -e "$1^{commit}" 2>/dev/null; }
    # A checkout in CI often has only the newest commit.
    known "$base" || git -C "$project" fetch --quiet --depth=1 origin "$base" || true
    contract diff --base "$base" --fail-on "$fail_on" || status=1
else
    echo "no earlier revision to compare with: contracts were only linted" >&2
fi

if [[ ${TABLES:-0} == 1 ]]; then
    found=$(tidemill --project "$project" status --json) || status=1
    for name in $(sed -n 's/^{"pipeline": "\([^"]*\)", "declared": true,.*/\1/p' <<<"$found"); do
        code=0
        said=$(tidemill --project "$project" plan "$name" --dry-run 2>&1) || code=$?
        echo "$said" >&2
        # 7: there is nothing to read.
        if [[ $code != 0 && $code != 7 ]]; then
            status=1
            said=${said//%/%25}
            [[ $format != github ]] || echo "::error title=plan of $name::${said//$'\n'/%0A}"
        fi
    done
fi
exit "$status"
