#!/usr/bin/env bash
# Print the commit with which the contracts of this repository are compared: where the work on HEAD left the main branch,
# or the commit before HEAD on the main branch itself. Prints nothing if there is neither.
#
#   MAIN   the main branch; by default the first of origin/main and main that there is
set -uo pipefail

for main in ${MAIN:-origin/main main}; do
    tip=$(git rev-parse --quiet --verify "$main^{commit}") || continue
    base=$(git merge-base "$tip" HEAD) || continue
    # On the main branch, or where it has all of HEAD, nothing is left to compare but the last commit.
    [[ $base != "$(git rev-parse HEAD)" ]] || continue
    echo "$base"
    exit
done
git rev-parse --quiet --verify 'HEAD^{commit}^' || true
