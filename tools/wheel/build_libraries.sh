#!/usr/bin/env bash
# Builds the libraries of libraries.txt into FOLDER/installed, as static archives of
# position-independent code that hold all they need: a wheel then needs no library of the machine
# but the C library. MIRROR is a mirror of Debian's archive. What is built already is left alone.
#   build_libraries.sh FOLDER MIRROR
set -euo pipefail
here="$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
folder="$(mkdir -p "$1" && readlink -f "$1")"
mirror="${2%/}"
installed="$folder/installed"
jobs="${ONEBIT_JOBS:-$(nproc)}"
flags="-O2 -DNDEBUG -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections"

die() {
  printf 'build_libraries: %s\n' "$*" >&2
  exit 1
}

# download ADDRESS FILE, in at most three attempts
download() {
  python3 -B - "$@" <<'END'
import sys
import time
import urllib.request

address, file = sys.argv[1:]
for attempt in range(3):
    try:
        urllib.request.urlretrieve(address, file)
        break
    except OSError as error:
        if attempt == 2:
            sys.exit(f"build_libraries: {error}")
        time.sleep(1)
END
}

# fetch PATH SHA256: the file of the archive, whose contents must be the ones that were reviewed.
fetch() {
  local file
  file="$folder/archives/$(basename "$1")"
  mkdir -p "$folder/archives"
  [ -e "$file" ] || { download "$mirror/$1" "$file.part" && mv "$file.part" "$file"; } ||
    die "$mirror/$1 cannot be downloaded: name another mirror of Debian's archive, or a snapshot"
  echo "$2  $file" | sha256sum --quiet -c - ||
    die "$file is not the file that libraries.txt names: remove it, or correct libraries.txt"
}

# unpack NAME: its sources, with Debian's patches, in FOLDER/sources/NAME.
unpack() {
  local name path sha256 to="$folder/sources/$1" patch
  rm -rf "$to"
  mkdir -p "$to"
  while read -r name path sha256; do
    [ "$name" = "$1" ] || continue
    fetch "$path" "$sha256"
    case "$path" in
      *.debian.*) tar -C "$to" -xf "$folder/archives/$(basename "$path")" ;;
      *) tar -C "$to" --strip-components=1 -xf "$folder/archives/$(basename "$path")" ;;
    esac
  done <"$here/libraries.txt"
  [ -e "$to/debian/patches/series" ] || return 0
  while read -r patch _; do
    case "$patch" in '' | '#'*) continue ;; esac
    patch -s -p1 -d "$to" <"$to/debian/patches/$patch" || die "$1: Debian's $patch does not fit"
  done <"$to/debian/patches/series"
}

# cmake_library NAME SUBFOLDER OPTION...
cmake_library() {
  local name="$1" build="$folder/builds/$1" source="$folder/sources/$1/$2"
  shift 2
  cmake -G Ninja -S "$source" -B "$build" --log-level=WARNING -Wno-dev \
    -DCMAKE_BUILD_TYPE=Release "-DCMAKE_C_FLAGS_RELEASE=$flags" \
    "-DCMAKE_CXX_FLAGS_RELEASE=$flags" "-DCMAKE_PREFIX_PATH=$installed" \
    "-DCMAKE_INSTALL_PREFIX=$installed" -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_SHARED_LIBS=OFF \
    -DBUILD_TESTING=OFF "$@"
  cmake --build "$build" --parallel "$jobs"
  cmake --install "$build" >/dev/null
}

# join_archives TO FROM...: adds the objects of archives to another one, so that a program that
# links the one needs no list of the others.
join_archives() {
  local to="$1" from
  shift
  {
    echo "CREATE $to.joined"
    for from in "$to" "$@"; do echo "ADDLIB $from"; done
    printf 'SAVE\nEND\n'
  } | ar -M
  mv "$to.joined" "$to"
}

# keep_licenses NAME: what a package that contains the library has to show.
keep_licenses() {
  local file
  mkdir -p "$installed/licenses"
  for file in "$folder/sources/$1"/{LICENSE,COPYING,THIRD-PARTY-PROGRAMS}* "$folder/sources/$1/lib/LICENSE"; do
    case "$file" in *GPL* | */zstd/COPYING) continue ;; esac # of programs, or not the chosen one of two
    [ ! -f "$file" ] || cat "$file"
  done >"$installed/licenses/$1.txt"
  [ -s "$installed/licenses/$1.txt" ] || die "$1 has no file with its licence"
}

build_zlib() {
  (cd "$folder/sources/zlib" && CFLAGS="$flags" ./configure --static --prefix="$installed" &&
    make -s -j"$jobs" libz.a && make -s install)
}

build_bzip2() {
  make -s -C "$folder/sources/bzip2" -j"$jobs" CFLAGS="$flags -D_FILE_OFFSET_BITS=64" libbz2.a
  install -D -m 644 "$folder/sources/bzip2/libbz2.a" "$installed/lib/libbz2.a"
  install -D -m 644 "$folder/sources/bzip2/bzlib.h" "$installed/include/bzlib.h"
}

build_xz() { cmake_library xz . -DXZ_NLS=OFF -DXZ_DOC=OFF -DXZ_TOOL_XZ=OFF -DXZ_TOOL_XZDEC=OFF \
  -DXZ_TOOL_LZMADEC=OFF -DXZ_TOOL_LZMAINFO=OFF -DXZ_TOOL_SCRIPTS=OFF; }
build_zstd() { cmake_library zstd build/cmake -DZSTD_BUILD_PROGRAMS=OFF -DZSTD_BUILD_SHARED=OFF \
  -DZSTD_BUILD_TESTS=OFF; }
build_lz4() { cmake_library lz4 build/cmake -DLZ4_BUILD_CLI=OFF -DBUILD_STATIC_LIBS=ON; }

# Filters only: no archive format with metadata, hence no XML, ACL or cryptography.
build_libarchive() {
  local option
  local -a options=()
  for option in OPENSSL MBEDTLS NETTLE LIBXML2 EXPAT ACL XATTR ICONV LIBB2 PCREPOSIX PCRE2POSIX CNG \
    TAR CPIO CAT UNZIP TEST WERROR; do
    options+=("-DENABLE_$option=OFF")
  done
  cmake_library libarchive . "${options[@]}"
  join_archives "$installed/lib/libarchive.a" \
    "$installed"/lib/lib{lzma,zstd,lz4,bz2,z}.a
}

build_hdf5() {
  cmake_library hdf5 . -DHDF5_BUILD_TOOLS=OFF -DHDF5_BUILD_EXAMPLES=OFF -DHDF5_BUILD_UTILS=OFF \
    -DHDF5_BUILD_HL_LIB=OFF -DHDF5_BUILD_CPP_LIB=OFF -DHDF5_BUILD_FORTRAN=OFF \
    -DHDF5_ENABLE_Z_LIB_SUPPORT=ON -DHDF5_ENABLE_SZIP_SUPPORT=OFF -DHDF5_ENABLE_ROS3_VFD=OFF \
    -DHDF5_ENABLE_HDFS=OFF -DHDF5_ENABLE_MAP_API=OFF
  join_archives "$installed/lib/libhdf5.a" "$installed/lib/libz.a"
  # Its file for pkg-config names no library if there are only static libraries.
  # shellcheck disable=SC2016
  sed -i -e 's|^Libs: .*|Libs: -L${libdir} -lhdf5|' -e '/^Libs.private/d' \
    "$installed/lib/pkgconfig/hdf5.pc"
}

# ICU's common library alone, with the data that onebit reads.
build_icu() {
  cp "$here"/icu/* "$folder/sources/icu"
  cmake_library icu . "-DICU_SOURCE=$folder/sources/icu/source"
}

# onebit calls products and reorders of f32 and bf16, products of u8 with s8, and reorders of s8.
# What computes other primitives and other types is not even compiled, which takes most of the time.
# The threads are onebit's own.
build_onednn() {
  local unused='/s8x8s32/jit_[^/]*(gemm_s8u8s32|_u8_copy_)[^/]*[.]cpp$|/(lrn|rnn|shuffle|prelu|capi)/[^/]*[.]cpp$'
  unused+='|/jit_uni_(binary|binary_kernel|eltwise|eltwise_int|xf16_sum|sparse_matmul)[.]cpp$'
  unused+='|/jit_[^/]*_conv[.]cpp$'
  unused+='|/(gemm_bf16|ip)_[^/]*[.]cpp$'
  unused+='|/jit_[^/]*(conv_|convolution|deconv|pool|normalization|resampling|softmax'
  unused+='|brgemm_inner_product|_dw_|x8s8s32x|_reduction)[^/]*[.]cpp$'
  leave_out onednn/src/cpu/x64/CMakeLists.txt "$unused"
  unused='/rnn/[^/]*[.]cpp$|/cpu_reorder_(comp|regular_(f16|f32_f16|f32_s32|f32_s8|f32_u8|f32_fp8|fp4|fp8|s32|s4|u4'
  unused+='|u8))[^/]*[.]cpp$|/matmul/gemm_x8s8s32x[^/]*[.]cpp$'
  unused+='|/(nchw|nhwc|ncsp|nspc)_[^/]*[.]cpp$|/cpu/gemm_(convolution[^/]*|x8s8s32x[^/]*|inner_product)[.]cpp$'
  unused+='|/(ref|simple)_(batch|conv|deconv|group|inner|layer|lrn|pool|reduction|resampling|shuffle'
  unused+='|softmax)[^/]*[.]cpp$'
  leave_out onednn/src/cpu/CMakeLists.txt "$unused"
  # Removes what is not compiled from the tables of implementations.
  sed -i -E '/impl_list_map\(\)\},/{/regular_(f32_f32|f32_bf16|bf16|s8)_/!d}' \
    "$folder/sources/onednn/src/cpu/reorder/cpu_reorder.cpp"
  sed -i '/rnn_/d' "$folder/sources/onednn/src/cpu/reorder/cpu_reorder_regular_s8.cpp"
  sed -i -e '/gemm_x8s8s32x_matmul/d' -e '/SPARSE.*matmul_t)$/d' \
    "$folder/sources/onednn/src/cpu/matmul/cpu_matmul_list.cpp"
  cmake_library onednn . -DONEDNN_LIBRARY_TYPE=STATIC -DONEDNN_CPU_RUNTIME=THREADPOOL \
    -DONEDNN_GPU_RUNTIME=NONE -DONEDNN_BUILD_GRAPH=OFF -DONEDNN_BUILD_DOC=OFF \
    -DONEDNN_BUILD_EXAMPLES=OFF -DONEDNN_BUILD_TESTS=OFF \
    '-DONEDNN_ENABLE_PRIMITIVE=MATMUL;REORDER' -DONEDNN_ENABLE_WORKLOAD=INFERENCE \
    -DONEDNN_ENABLE_JIT_PROFILING=OFF -DONEDNN_ENABLE_ITT_TASKS=OFF -DONEDNN_ARCH_OPT_FLAGS=
}

# leave_out FILE REGEX: takes sources out of a CMakeLists.txt of oneDNN. Some of the remaining
# sources were generated, and are compiled without optimization: each is one long function that
# emits a kernel once, and its optimization would take minutes.
leave_out() {
  # shellcheck disable=SC2016 # CMake expands these
  local file="$folder/sources/$1" before='add_library(${OBJ_LIB} OBJECT ${SOURCES})' line
  grep -qxF "$before" "$file" || die "$1 is another one than expected"
  while IFS= read -r line; do
    # shellcheck disable=SC2016
    [ "$line" != "$before" ] || printf '%s\n' "list(FILTER SOURCES EXCLUDE REGEX \"$2\")" \
      'set(GENERATED ${SOURCES})' 'list(FILTER GENERATED INCLUDE REGEX "_autogen[.]cpp$")' \
      'set_source_files_properties(${GENERATED} PROPERTIES COMPILE_OPTIONS "-O0;-U_FORTIFY_SOURCE")'
    printf '%s\n' "$line"
  done <"$file" >"$file.shorter"
  mv "$file.shorter" "$file"
}

build_fmt() { cmake_library fmt . -DFMT_DOC=OFF -DFMT_TEST=OFF; }
build_spdlog() { cmake_library spdlog . -DSPDLOG_FMT_EXTERNAL=ON -DSPDLOG_BUILD_EXAMPLE=OFF; }
build_highway() { cmake_library highway . -DHWY_ENABLE_TESTS=OFF -DHWY_ENABLE_EXAMPLES=OFF \
  -DHWY_ENABLE_CONTRIB=OFF; }
build_json() { cmake_library json . -DJSON_BuildTests=OFF; }
build_cli11() { cmake_library cli11 . -DCLI11_BUILD_TESTS=OFF -DCLI11_BUILD_EXAMPLES=OFF \
  -DCLI11_BUILD_DOCS=OFF -DCLI11_PRECOMPILED=OFF; }

mkdir -p "$folder/done"
for library in zlib bzip2 xz zstd lz4 libarchive hdf5 icu fmt spdlog highway json cli11 onednn; do
  [ ! -e "$folder/done/$library" ] || continue
  printf '== %s\n' "$library"
  unpack "$library"
  "build_$library"
  keep_licenses "$library"
  touch "$folder/done/$library"
done
