#!/bin/sh
# Generates the pages of all experiments from results/*.jsonl: scripts/reproduction.sh [HOPEDGN] [OUT]
# Writes OUT.md, the index, and OUT/NAME.{md,html} with their figures. HOPEDGN is the program (default: hopedgn on the PATH), OUT a
# folder (default: target/reproduction). Needs no data.
set -eu
cd "$(dirname "$0")/.."
"${1:-hopedgn}" experiment pages experiments --into "${2:-target/reproduction}" --results \
    results/models.jsonl results/hopedgn-tf32.jsonl results/variants.jsonl results/ten-epochs.jsonl \
    results/padding.jsonl results/best.jsonl results/relations.jsonl results/stats.jsonl results/scoreboard.jsonl
