#!/usr/bin/env bash
# Lint the contracts of a project, and say what they break since an earlier revision. Ends with 1 if something is wrong.
#
#   PROJECT    the project's folder; by default the working directory
#   BASE       the revision of git to compare with; without one, contracts are only linted
#   FORMAT     text, json, github, junit or sarif
#   FAIL_ON    error or warning
#   TABLES     1 also plans the next batch of each pipeline, and writes nothing: what published tables would lose. It
#              needs the log and the lake. What it says goes to standard error
set -uo pipefail

project=${PROJECT:-.}
base=${BASE:-}
options=(--format "${FORMAT:-text}" --fail-on "${FAIL_ON:-error}")
status=0

tidemill --project "$project" contract lint "${options[@]}" || status=1

# Where a branch is new, GitHub and GitLab name a revision of zeros only.
if [[ -n ${base//0/} ]]; then
    known() { git -C "$project" cat-file -e "$1^{commit}" 2>/dev/null; }
    # A checkout in CI often has only the newest commit.
    known "$base" || git -C "$project" fetch --quiet --depth=1 origin "$base" || true
    tidemill --project "$project" contract diff --base "$base" "${options[@]}" || status=1
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
            [[ ${FORMAT:-} != github ]] || echo "::error title=plan of $name::${said//$'\n'/%0A}"
        fi
    done
fi
exit "$status"
