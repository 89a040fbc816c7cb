# ./run release: what must be true before a version is published. What people have to do is printed
# at the end.
# shellcheck shell=bash

run_release() {
  local version
  case "${1:-}" in
    '' | --check) ;;
    *) die "release: unknown option \"$1\"; see ./run help" ;;
  esac
  python3 -B tools/check_release.py || die "release: mend these first"
  [ "${1:-}" != --check ] || return 0
  ./run lint
  ./run test --all
  ./run wheel
  ./run package
  version="$(python3 -B tools/check_release.py --version)"
  say "onebit $version is ready. What is left for you:"
  cat <<TEXT
  1. ./run debian13, where a machine for it is free
  2. ./run gpu-check, on a machine with an NVIDIA GPU
  3. git tag -s v$version -m "onebit $version" and git push --tags
  4. publish build-wheel/dist/*.whl and build/packages/* with the section of CHANGELOG.md
TEXT
}
