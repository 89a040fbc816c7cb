# ./run format: clang-format in place.
# shellcheck shell=bash

cpp_sources() {
  git ls-files --cached --others --exclude-standard -- '*.h' '*.cc' '*.cu'
}

run_format() {
  [ $# -eq 0 ] || die "format: takes no option; see ./run help"
  install_packages tools/debian_packages_lint.txt
  cpp_sources | xargs -r clang-format -i
}
