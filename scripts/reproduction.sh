#!/bin/sh
# Writes docs/reproduction.md and docs/reproduction/*.{md,html,svg} from results/*.jsonl: scripts/reproduction.sh [HOPEDGN] [OUT]
# HOPEDGN is the program (default: hopedgn on the PATH), OUT the folder of the pages (default: docs/reproduction).
set -eu
cd "$(dirname "$0")/.."
"${1:-hopedgn}" experiment pages experiments --into "${2:-docs/reproduction}" --results \
    results/models.jsonl results/hopedgn-tf32.jsonl results/variants.jsonl results/ten-epochs.jsonl results/nodes.jsonl \
    results/padding.jsonl
