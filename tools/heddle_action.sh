#!/bin/sh
# One action of heddle.bzl: runs heddle in an environment of its own and keeps the declared outputs of its run directory.
#
# Usage: heddle_action.sh [KEEP]... -- HEDDLE COMMAND [ARGUMENT]...        (--out and --quiet are added here)
#   --simulators DIR            simulators built before, used instead of being built again
#   --keep FILE OUTPUT          FILE of the run directory
#   --keep-folder DIR OUTPUT    what lies in DIR of the run directory, as the folder OUTPUT
#   --keep-programs OUTPUT      of each accelerator region: instructions (binary and text) and weights
#   --keep-hls OUTPUT           of each accelerator region: HLS C++, its test bench and constants
#   --keep-simulators OUTPUT    the simulators that were built
#   --keep-verdict              exit statuses 4 (budget) and 5 (mismatch) are results too: the report says so
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
mkdir -p "$work/cache/verilated" "$work/tmp"
# Nothing of the user's: no caches, no settings, no colours.
export HOME="$work" XDG_CACHE_HOME="$work/cache" HEDDLE_CACHE="$work/cache" TMPDIR="$work/tmp" NO_COLOR=1 LC_ALL=C
run="$work/run"
keep="$work/keep"
: >"$keep"
verdict=no

while [ "$1" != -- ]; do
  case "$1" in
    --simulators)
      for simulator in "$2"/*; do ln -s "$(realpath "$simulator")" "$work/cache/verilated/"; done
      shift 2 ;;
    --keep | --keep-folder) printf '%s\t%s\t%s\n' "$1" "$3" "$2" >>"$keep"; shift 3 ;;
    --keep-programs | --keep-hls | --keep-simulators) printf '%s\t%s\t\n' "$1" "$2" >>"$keep"; shift 2 ;;
    --keep-verdict) verdict=yes; shift ;;
    *) echo "heddle_action.sh: unknown argument $1" >&2; exit 2 ;;
  esac
done
shift

status=0
"$@" --quiet --out "$run" >"$work/stdout" 2>"$work/stderr" || status=$?
case "$status $verdict" in
  "0 "* | "4 yes" | "5 yes") ;;
  *) cat "$work/stderr" >&2; exit "$status" ;;
esac

# keep_regions OUTPUT PROGRAM: of each accelerator region the program (PROGRAM = yes), or all the rest (no).
keep_regions() {
  found=no
  for region in "$run"/accelerator/region_*; do
    [ -d "$region" ] || continue
    found=yes
    mkdir -p "$1/${region##*/}"
    for file in "$region"/*; do
      matches=no
      case "${file##*/}" in program.* | weights.bin) matches=yes ;; esac
      [ "$matches" = "$2" ] && cp "$file" "$1/${region##*/}/"
    done
  done
  if [ "$found" = no ]; then
    echo "error: the plan puts no node on an accelerator, so there is none to build (heddle_partition_report says why)" >&2
    exit 3
  fi
}

tab=$(printf '\t')
while IFS="$tab" read -r what output source; do
  case "$what" in
    --keep) cp "$run/$source" "$output" ;;
    --keep-folder) [ ! -d "$run/$source" ] || cp -R "$run/$source/." "$output/" ;;
    --keep-programs) keep_regions "$output" yes ;;
    --keep-hls) keep_regions "$output" no ;;
    --keep-simulators) cp -R "$work/cache/verilated/." "$output/" ;;
  esac
done <"$keep"
