# ./run debian13: makes a fresh Debian 13 and runs commands of the project there as a new user would.
# Everything runs in namespaces of its own (mounts, processes, host name): when this shell ends, even
# by kill -9, the kernel ends every process in them, and nothing stays mounted.
# shellcheck shell=bash

run_debian13() {
  local folder="" mirror="" security="" incremental="" status=0
  while [ $# -gt 0 ]; do
    case "$1" in
      --folder | --mirror)
        [ -n "${2:-}" ] || die "debian13: $1 takes a value; see ./run help"
        [ "$1" = --folder ] && folder="$2" || mirror="$2"
        shift 2
        ;;
      --incremental)
        incremental=yes
        shift
        ;;
      -*) die "debian13: unknown option \"$1\"; see ./run help" ;;
      *) break ;;
    esac
  done
  [ -z "$incremental" ] || [ -n "$folder" ] ||
    die "debian13: --incremental continues in the folder of an earlier run; name it with --folder"
  [ $# -gt 0 ] || set -- './run build' './run test' './run demo'
  [ "$(id -u)" -eq 0 ] || die "debian13: run it as root, which debootstrap and chroot need"
  command -v apt-get >/dev/null || die "debian13: needs a Debian system, whose mirror it uses"
  install_packages tools/debian_packages_debian13.txt
  [ -n "$mirror" ] || read_mirrors
  [ -z "$(git status --porcelain)" ] || say "changes that are not committed are left out"
  if [ -n "$folder" ]; then
    mkdir -p "$folder"
    folder="$(readlink -f "$folder")"
  else
    # Not /tmp, which is often in memory: the system and a build take 2 GB.
    folder="$(mktemp -d "${TMPDIR:-/var/tmp}/onebit-debian13-XXXXXX")"
    new_folder="$folder"
  fi
  trap end_debian13 EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  exec {lock}>"$folder/lock"
  flock -n "$lock" || die "debian13: another run uses $folder"

  # The shell's commands in the background ignore Ctrl-C, which some tests send to programs.
  env --default-signal setpriv --pdeathsig KILL unshare --mount --uts --ipc --pid --fork \
    --kill-child --propagation private --mount-proc bash -euo pipefail -c '
      source tools/shell/base.sh
      source tools/shell/debian13.sh
      in_namespaces "$@"
    ' bash "$folder/debian13" "$mirror" "$security" "$incremental" "$@" </dev/null {lock}>&- &
  namespaces=$!
  wait "$namespaces" || status=$?
  namespaces=""
  return "$status"
}

NEW_USER=user
# The release of Debian that make_root and set_up_apt make a system of.
suite=trixie
new_folder=""
namespaces=""

# Ends what runs in the namespaces and removes a folder that this run made for itself.
end_debian13() {
  local first=""
  trap '' INT TERM HUP
  if [ -n "$namespaces" ]; then
    # The end of the namespaces' first process is the end of all others, and unshare waits for it.
    read -r first _ 2>/dev/null <"/proc/$namespaces/task/$namespaces/children" || true
    kill -KILL "${first:-$namespaces}" 2>/dev/null || true
    wait "$namespaces" 2>/dev/null || true
  fi
  [ -z "$new_folder" ] || rm -rf --one-file-system "$new_folder"
}

# read_mirrors: sets `mirror` and `security` to the archives that this machine's apt uses. Their
# labels are known once apt-get update has run. security stays empty if apt uses no such archive.
read_mirrors() {
  local archives
  archives="$(list_archives)"
  if ! grep -q '^Debian|' <<<"$archives"; then
    apt-get -q update || die "debian13: apt-get update failed"
    archives="$(list_archives)"
  fi
  mirror="$(awk -F '|' '$1 == "Debian" {print $2; exit}' <<<"$archives")"
  security="$(awk -F '|' '$1 == "Debian-Security" {print $2; exit}' <<<"$archives")"
  [ -n "$mirror" ] || die "debian13: apt is set up with no mirror of Debian; name one: --mirror URL"
}

list_archives() {
  # shellcheck disable=SC2016 # apt-get replaces these
  apt-get indextargets --format '$(LABEL)|$(REPO_URI)|$(COMPONENT)' 'Created-By: Packages' |
    awk -F '|' '$3 == "main" && $2 ~ /^(https?|ftp|file):/'
}

# in_namespaces ROOT MIRROR SECURITY INCREMENTAL COMMAND...: the first process of the namespaces.
in_namespaces() {
  local root="$1" mirror="$2" security="$3" incremental="$4"
  shift 4
  hostname debian13
  [ -d "$root" ] || make_root "$root" "$mirror"
  grep -q '^13' "$root/etc/debian_version" 2>/dev/null ||
    die "debian13: $root is no Debian 13; name another folder or remove it"
  set_up_apt "$root" "$mirror" "$security"
  cp -L --remove-destination /etc/resolv.conf "$root/etc/resolv.conf"
  mount_systems "$root"
  copy_commit "$root" "$incremental"

  local command started status
  local -a results=() failed=()
  for command in "$@"; do
    say "debian13: $command"
    started=$SECONDS status=0
    in_root "$root" "$command" || status=$?
    results+=("debian13: $command ended with $status after $((SECONDS - started)) s")
    [ "$status" -eq 0 ] || failed+=("$command")
  done
  say "debian13: commit $(git -c safe.directory='*' rev-parse --short HEAD)"
  chroot "$root" dpkg-query -W base-files 'g++' cmake libdnnl-dev openmpi-bin 2>/dev/null || true
  for command in "${results[@]}"; do say "$command"; done
  [ ${#failed[@]} -eq 0 ] || die "debian13: failed:$(printf ' "%s"' "${failed[@]}")"
}

# make_root ROOT MIRROR: Debian's smallest system, with what an installed one has besides: a user
# who may use sudo, and names for its addresses. A root that is not finished has another name.
make_root() {
  local root="$1" part="$1.part" proxy=""
  rm -rf --one-file-system "$part"
  eval "$(apt-config shell proxy Acquire::http::Proxy)"
  if [ -n "$proxy" ] && [ "$proxy" != DIRECT ]; then
    export http_proxy="${http_proxy:-$proxy}"
  fi
  say "debian13: a new system"
  debootstrap --variant=minbase --include=ca-certificates,sudo "$suite" "$part" "$2" ||
    die "debian13: debootstrap failed"
  chmod 755 "$part"
  echo debian13 >"$part/etc/hostname"
  printf '%s\n' '127.0.0.1 localhost' '::1 localhost' '127.0.1.1 debian13' >"$part/etc/hosts"
  chroot "$part" useradd --create-home --shell /bin/bash "$NEW_USER"
  printf '%s\n' "$NEW_USER ALL=(ALL) NOPASSWD: ALL" \
    'Defaults env_keep += "http_proxy https_proxy ftp_proxy all_proxy no_proxy"' \
    'Defaults env_keep += "HTTP_PROXY HTTPS_PROXY FTP_PROXY ALL_PROXY NO_PROXY"' \
    >"$part/etc/sudoers.d/$NEW_USER"
  mv "$part" "$root"
}

# set_up_apt ROOT MIRROR SECURITY: the system gets its packages from where this machine does, through
# the same proxies, and trusts the same certificates.
set_up_apt() {
  local root="$1" mirror="$2" security="$3" trusted=/etc/ssl/certs/ca-certificates.crt
  {
    printf 'deb %s %s main\n' "$mirror" "$suite" "$mirror" "$suite-updates"
    [ -z "$security" ] || printf 'deb %s %s-security main\n' "$security" "$suite"
  } >"$root/etc/apt/sources.list"
  apt-config dump | grep -E '^Acquire::((https?|ftp)::|Retries|Check-)' |
    grep -vE 'Proxy-Auto-Detect|::Ca(Info|Path)' >"$root/etc/apt/apt.conf.d/90machine" || true
  [ ! -e "$trusted" ] || cp -L "$trusted" "$root$trusted"
}

# mount_systems ROOT: /proc, /sys and a /dev with no device of this machine but the usual ones. The
# root becomes a mount of its own, as `ip netns` needs it.
mount_systems() {
  local root="$1" name
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount -t tmpfs -o mode=755 tmpfs "$root/dev"
  for name in null zero full random urandom tty; do
    touch "$root/dev/$name"
    mount --bind "/dev/$name" "$root/dev/$name"
  done
  mkdir "$root/dev/pts" "$root/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
  mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
  ln -s pts/ptmx "$root/dev/ptmx"
  ln -s /proc/self/fd "$root/dev/fd"
  for name in 0:stdin 1:stdout 2:stderr; do
    ln -s "/proc/self/fd/${name%%:*}" "$root/dev/${name##*:}"
  done
}

# copy_commit ROOT INCREMENTAL: a clean clone of the current commit, or the clone of the run before
# with its build, brought to this commit. git refuses to read another user's repository by default.
copy_commit() {
  local home="$1/home/$NEW_USER" clone
  git -c safe.directory='*' bundle create -q "$home/onebit.bundle" HEAD
  if [ -n "$2" ] && [ -d "$home/onebit/.git" ]; then
    in_root "$1" 'git fetch -q ~/onebit.bundle HEAD && git reset -q --hard FETCH_HEAD &&
      git clean -fdq'
    return
  fi
  clone="$(mktemp -d "$home/clone-XXXXXX")"
  rm -rf --one-file-system "$home/onebit"
  git -c advice.detachedHead=false clone -q "$home/onebit.bundle" "$clone/onebit"
  chroot "$1" chown -R "$NEW_USER:$NEW_USER" "/home/$NEW_USER"
  mv "$clone/onebit" "$home/onebit"
  rmdir "$clone"
}

# in_root ROOT COMMAND: runs a command of the shell as the new user, in the clone, with nothing of
# this environment but proxies, pip's settings and the settings of ./run.
in_root() {
  local -a environment=("HOME=/home/$NEW_USER" "USER=$NEW_USER" "LOGNAME=$NEW_USER"
    LANG=C.UTF-8 "TERM=${TERM:-dumb}"
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
  local name
  for name in $(compgen -e); do
    case "$name" in
      *_proxy | *_PROXY | PIP_* | ONEBIT_*) environment+=("$name=${!name}") ;;
    esac
  done
  # shellcheck disable=SC2016 # expanded by the shell inside
  env -i --default-signal "${environment[@]}" chroot "$1" runuser -u "$NEW_USER" -- \
    bash -c 'cd ~/onebit && eval "$1"' bash "$2"
}
