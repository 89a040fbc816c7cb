# ./run demo: trains an encoder on a text and shows what it learned.
# shellcheck shell=bash

run_demo() {
  [ $# -eq 0 ] || die "demo: takes no option; see ./run help"
  local folder=build/demo
  install_packages tools/debian_packages_demo.txt
  build_program
  mkdir -p "$folder"
  rm -rf "${folder:?}"/{train,valid,corpus,held-out,run}

  say "the text: one verse a line, a blank line between chapters, every twentieth chapter held out"
  split_bible "$folder/train" "$folder/valid"

  say "from text to tokens"
  build/onebit prepare --input "$folder/train" --output "$folder/corpus" --format lines \
    --vocab-size 8192
  build/onebit prepare --input "$folder/valid" --output "$folder/held-out" --format lines \
    --vocab "$folder/corpus/vocab.txt"

  say "training: two MPI ranks, 1-bit Adam"
  two_ranks build/onebit pretrain --recipe recipes/demo.json --data "$folder/corpus" \
    --valid "$folder/held-out" --output "$folder/run"

  say "what it learned"
  local sentence
  for sentence in "And the LORD spake unto [MASK] , saying ," \
    "In the beginning God created the [MASK] and the earth ." \
    "And it came to [MASK] in those days ."; do
    build/onebit fill "$folder/run" "$sentence"
  done
}

# split_bible TRAIN VALID: writes two folders of text, where the second gets every twentieth
# chapter.
split_bible() {
  mkdir -p "$1" "$2"
  # Lines read "Ge1:1 In the beginning ...": book, chapter, verse, text.
  bible -f 'Gen1:1-Rev22:21' | awk -v train="$1/bible.txt" -v valid="$2/bible.txt" '
    {
      split($1, place, ":")
      if (place[1] != chapter) {
        chapter = place[1]
        file = ++chapters % 20 == 0 ? valid : train
        if (file in begun) print "" > file
        begun[file] = 1
      }
      print substr($0, length($1) + 2) > file
    }'
}

# Runs a command on two MPI ranks, which need not have a core each.
two_ranks() {
  local -a options=(-np 2 --bind-to none --oversubscribe)
  if [ "$(id -u)" -eq 0 ]; then
    options+=(--allow-run-as-root)
  fi
  mpirun "${options[@]}" "$@"
}
