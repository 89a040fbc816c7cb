# ./run package: packages of the program for the release of Debian on which they are built, tried in a
# fresh one that has nothing else.
# shellcheck shell=bash

# shellcheck source=tools/shell/debian13.sh
source tools/shell/debian13.sh

run_package() {
  local packages=build/packages
  [ $# -eq 0 ] || die "package: takes no option; see ./run help"
  install_packages tools/debian_packages_package.txt
  build_program
  rm -rf "$packages"
  mkdir -p "$packages"
  say "packages for Debian"
  (cd build && cpack --config CPackConfig.cmake -B packages >packages/cpack.log) ||
    { cat "$packages/cpack.log" && die "package: cpack failed"; }
  rm -rf "$packages/_CPack_Packages"

  if [ "$(id -u)" -eq 0 ]; then
    try_packages
  else
    say "not tried: run ./run package as root, which a fresh Debian needs"
  fi
  ls -l "$packages"/*.deb
}

# try_packages: makes a fresh system of this machine's release and runs the packages there.
try_packages() {
  local mirror="" security="" folder
  # shellcheck source=/dev/null
  suite="$(. /etc/os-release && echo "$VERSION_CODENAME")"
  read_mirrors
  folder="$(mktemp -d "${TMPDIR:-/var/tmp}/onebit-package-XXXXXX")"
  # shellcheck disable=SC2034 # removed by end_debian13
  new_folder="$folder"
  trap end_debian13 EXIT
  # shellcheck disable=SC2016 # the inner shell expands these
  unshare --mount --uts --ipc --pid --fork --kill-child --propagation private --mount-proc \
    bash -euo pipefail -c '
      source tools/shell/base.sh
      source tools/shell/package.sh
      suite="$1"
      try_in_root "$2" "$3" "$4"
    ' bash "$suite" "$folder/root" "$mirror" "$security"
}

# try_in_root ROOT MIRROR SECURITY: makes the system and installs the packages with what they need.
try_in_root() {
  local root="$1"
  make_root "$root" "$2"
  set_up_apt "$root" "$2" "$3"
  cp -L --remove-destination /etc/resolv.conf "$root/etc/resolv.conf"
  mount_systems "$root"
  mkdir -p "$root/tree/tools/package"
  cp -r CMakeLists.txt docs "$root/tree"
  cp tools/package/try_package.sh "$root/tree/tools/package"
  cp build/packages/*.deb "$root/tree"
  in_bare_root "$root" apt-get -q update
  say "onebit, in $suite"
  in_bare_root "$root" sh -c 'apt-get -q -y --no-install-recommends install /tree/onebit_*.deb'
  in_bare_root "$root" /tree/tools/package/try_package.sh onebit tcp
  say "onebit-openmpi, in $suite"
  in_bare_root "$root" sh -c 'apt-get -q -y --no-install-recommends install /tree/onebit-openmpi_*.deb'
  in_bare_root "$root" /tree/tools/package/try_package.sh onebit openmpi
}

# in_bare_root ROOT COMMAND...
in_bare_root() {
  env -i HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin chroot "$@"
}
