# A run and its stages; sourced.
#
#   begin TITLE ARGUMENT...       the run's folder $OUT; OVERRIDES=(ARGUMENT...). RECIPE and PARTS, the recipe's name and
#                                 its parts in order, must be set
#   stage NAME COMMAND INPUT...   run COMMAND NAME, which fills the folder $OUT/NAME, or take that from an earlier run
#   ended NAME                    whether every part that STAGES asks for comes before the stage NAME
#
# A stage writes into $OUT/NAME, which is there and empty, and nowhere else. It is taken from $CACHE/NAME if its inputs
# are those of an earlier run: name=value, or name=@path for what lies there (an earlier stage's folder stands for all
# that it was made from). PROFILE, versions and the text of the function COMMAND are inputs of every stage; the other
# functions it calls are not, so name the code that matters: "code=@$ROOT/verl_sql/dataset". Only a stage that came to
# its end is kept. Files are shared by hard links: do not edit a product in place.
#
# STAGES=part,... runs a part of the recipe; earlier ones then come from the cache. A stage belongs to the part of its
# own name unless PART says otherwise: PART[sample]=data.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
CACHE=${CACHE:-$ROOT/outputs/cache}
STAGES=${STAGES:-}
declare -A PART=()

# begin TITLE ARGUMENT...: everything is checked; make the run's folder and say what begins.
begin() {
  local title=$1 part
  shift
  OVERRIDES=("$@")
  for part in ${STAGES//,/ }; do
    place_of "$part" >/dev/null || fail "STAGES=$STAGES: there is no part $part, only ${PARTS[*]}"
  done
  OUT=${OUT:-$ROOT/outputs/$RECIPE/$(date +%Y%m%d_%H%M%S)}
  [ ! -e "$OUT/stages.jsonl" ] || fail "$OUT holds an earlier run; choose another folder with OUT="
  mkdir -p "$OUT" "$CACHE"
  absolute OUT CACHE
  : >"$OUT/stages.jsonl"
  echo "verl_sql: $title on the $PROFILE profile; everything goes to $OUT"
}

# place_of PART: its position among PARTS.
place_of() {
  local place
  for place in "${!PARTS[@]}"; do
    if [ "${PARTS[place]}" = "$1" ]; then echo "$place"; return; fi
  done
  return 1
}

# wanted NAME: whether STAGES asks for the stage's part.
wanted() { [ -z "$STAGES" ] || [[ ",$STAGES," = *",${PART[$1]:-$1},"* ]]; }

# ended NAME: whether every part that STAGES asks for comes before the stage NAME.
ended() {
  [ -n "$STAGES" ] || return 1
  local part here
  here=$(place_of "${PART[$1]:-$1}")
  for part in ${STAGES//,/ }; do
    if [ "$(place_of "$part")" -ge "$here" ]; then return 1; fi
  done
}

# stage NAME COMMAND INPUT...
stage() {
  local name=$1 command=$2 began=$SECONDS status=0
  shift 2
  if ended "$name"; then
    echo "verl_sql: STAGES=$STAGES is done, in $OUT"
    exit 0
  fi
  stage_cache take "$CACHE" "$name" "$OUT/$name" "profile=$PROFILE" "function=$(declare -f "$command")" "$@" || status=$?
  if [ "$status" = 0 ]; then
    note_stage "$name" 0
    return
  fi
  [ "$status" = 3 ] || exit "$status"
  if ! wanted "$name"; then
    rm -r "$OUT/$name"
    fail "STAGES=$STAGES needs the stage $name, which no earlier run made as these settings and this code would;" \
      "run without STAGES, or with STAGES=${PART[$name]:-$name} first"
  fi
  echo "── $name ($(date +%H:%M:%S))"
  "$command" "$name"
  stage_cache keep "$CACHE" "$OUT/$name" --seconds $((SECONDS - began))
  note_stage "$name" $((SECONDS - began))
  echo "── $name took $((SECONDS - began)) s"
}

stage_cache() { "$PY" -m verl_sql.integration.stage_cache "$@"; }

note_stage() { printf '{"stage": "%s", "seconds": %d}\n' "$1" "$2" >>"$OUT/stages.jsonl"; }
