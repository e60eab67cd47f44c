#!/usr/bin/env bash
# Builds the book into target/book. With the program as an argument (target/release/hopedgn), the tables and figures of the paper,
# generated from results/, are its last chapter. Needs mdBook: cargo install mdbook --no-default-features --locked
set -euo pipefail
cd "$(dirname "$0")/.."
source=target/book-source
rm -rf "$source"
mkdir -p "$source"
cp -r docs/book.toml docs/src "$source"
if [ $# -gt 0 ]; then
    scripts/reproduction.sh "$1" "$source/src/tables" >/dev/null
    {
        printf '\n# Tables and figures\n\n- [List](tables.md)\n'
        for page in "$source"/src/tables/*.md; do
            printf -- '- [%s](tables/%s)\n' "$(sed -n 's/^# //p;T;q' "$page")" "$(basename "$page")"
        done
    } >>"$source/src/SUMMARY.md"
fi
mdbook build "$source" --dest-dir "$PWD/target/book"
