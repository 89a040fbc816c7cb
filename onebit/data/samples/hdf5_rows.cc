#include "onebit/data/samples/hdf5_rows.h"

#include <hdf5.h>

#include <algorithm>
#include <optional>

#include "onebit/data/samples/sample.h"
#include "onebit/ground/base/error.h"

namespace onebit::samples {
namespace {

constexpr uint64_t kMaxChunkBytes = uint64_t{256} << 20;
constexpr uint64_t kUsualBlockBytes = uint64_t{16} << 20;
constexpr size_t kCacheBytes = size_t{64} << 20, kCacheSlots = 12421;

// A libhdf5 object, closed by the function for its kind.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept : id_(other.id_), close_(other.close_) { other.id_ = -1; }
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Handle& operator=(Handle&&) = delete;

  hid_t id() const { return id_; }
  bool valid() const { return id_ >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

class Array {
 public:
  Array(hid_t file, const std::string& path, const char* name)
      : place_(fmt::format("{}: dataset {}", path, name)), dataset_(open(file, name)) {
    read_shape();
    check_type();
    check_storage();
  }

  uint64_t rows() const { return rows_; }
  uint64_t columns() const { return columns_; }
  const std::string& place() const { return place_; }
  // The number of rows stored in one chunk, or 0 if the dataset is not chunked.
  uint64_t chunk_rows() const { return chunk_rows_; }

  void require_one_column() const {
    require(columns_ == 1 && !is_ragged_, "{}: has {} numbers per row, expected 1", place_,
            columns_);
  }

  void read(uint64_t first, uint64_t count, Hdf5Rows& out) {
    out.lengths.assign(count, static_cast<uint32_t>(columns_));
    out.numbers.clear();
    if (is_ragged_) return read_lists(first, count, out);
    numbers_.resize(count * columns_);
    const Handle type(H5Tcopy(H5T_NATIVE_INT64), H5Tclose);
    read_block(first, count, type, numbers_.data());
    for (size_t i = 0; i < numbers_.size(); ++i) {
      out.numbers.push_back(narrow(numbers_[i], first + i / columns_));
    }
  }

 private:
  // Links to other files are not followed.
  Handle open(hid_t file, const char* name) const {
    H5L_info_t link;
    require(H5Lget_info(file, name, &link, H5P_DEFAULT) >= 0 && link.type == H5L_TYPE_HARD,
            "{}: is a soft or external link; links are not followed", place_);
    const Handle access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
    H5Pset_chunk_cache(access.id(), kCacheSlots, kCacheBytes, 1.0);
    Handle dataset(H5Dopen2(file, name, access.id()), H5Dclose);
    require(dataset.valid(), "{}: cannot be opened: it is not a dataset, or the file is damaged",
            place_);
    return dataset;
  }

  void read_shape() {
    const Handle space(H5Dget_space(dataset_.id()), H5Sclose);
    rank_ = space.valid() ? H5Sget_simple_extent_ndims(space.id()) : -1;
    hsize_t sizes[2] = {0, 1};
    require((rank_ == 1 || rank_ == 2) &&
                H5Sget_simple_extent_dims(space.id(), sizes, nullptr) == rank_,
            "{}: has {} dimensions, expected [examples] or [examples, length]", place_, rank_);
    rows_ = sizes[0];
    columns_ = sizes[1];
    require(columns_ >= 1 && columns_ <= static_cast<uint64_t>(kMaxTokens),
            "{}: has rows of {} numbers, expected 1 to {}", place_, columns_, kMaxTokens);
  }

  void check_type() {
    const Handle type(H5Dget_type(dataset_.id()), H5Tclose);
    H5T_class_t kind = type.valid() ? H5Tget_class(type.id()) : H5T_NO_CLASS;
    if (kind == H5T_VLEN && rank_ == 1) {
      is_ragged_ = true;
      const Handle inner(H5Tget_super(type.id()), H5Tclose);
      kind = inner.valid() ? H5Tget_class(inner.id()) : H5T_NO_CLASS;
    }
    require(kind == H5T_INTEGER, "{}: is not an integer dataset (int8 to int64)", place_);
  }

  void check_storage() {
    const Handle plan(H5Dget_create_plist(dataset_.id()), H5Pclose);
    const H5D_layout_t layout = plan.valid() ? H5Pget_layout(plan.id()) : H5D_LAYOUT_ERROR;
    require(layout == H5D_COMPACT || layout == H5D_CONTIGUOUS || layout == H5D_CHUNKED,
            "{}: uses virtual storage, which is not supported, or the file is damaged", place_);
    require(H5Pget_external_count(plan.id()) == 0,
            "{}: uses external storage, which is not supported", place_);
    const int filters = H5Pget_nfilters(plan.id());
    for (int i = 0; i < filters; ++i) {
      unsigned flags = 0, config = 0;
      size_t values = 0;
      char name[64] = "";
      const H5Z_filter_t filter = H5Pget_filter2(plan.id(), static_cast<unsigned>(i), &flags,
                                                 &values, nullptr, sizeof name, name, &config);
      require(filter >= 0 && H5Zfilter_avail(filter) > 0,
              "{}: is compressed with filter {} ({}), which libhdf5 does not have: compress it "
              "with gzip (`h5repack -f GZIP=4 IN OUT`), or set HDF5_PLUGIN_PATH to the folder of "
              "the filter's plugin",
              place_, static_cast<int>(filter), std::string(name, strnlen(name, sizeof name)));
    }
    hsize_t chunk[2] = {0, 0};
    if (layout == H5D_CHUNKED && H5Pget_chunk(plan.id(), rank_, chunk) == rank_) {
      chunk_rows_ = chunk[0];
      require_all_chunks(chunk[0], rank_ == 2 ? chunk[1] : 1);
    }
  }

  // libhdf5 reads zeros where a chunk is not stored, or its damaged index does not have it.
  void require_all_chunks(hsize_t chunk_rows, hsize_t chunk_columns) {
    const Handle space(H5Dget_space(dataset_.id()), H5Sclose);
    const hsize_t columns = is_ragged_ ? 1 : columns_;
    const hsize_t wanted =
        (rows_ + chunk_rows - 1) / chunk_rows * ((columns + chunk_columns - 1) / chunk_columns);
    hsize_t stored = 0;
    require(
        H5Dget_num_chunks(dataset_.id(), space.id(), &stored) >= 0 && stored == wanted,
        "{}: {} of its {} chunks are stored: the file is damaged, or was not written to its end",
        place_, stored, wanted);
    for (hsize_t chunk = 0; chunk < stored; ++chunk) {
      hsize_t offset[2] = {0, 0}, size = 0;
      unsigned filters = 0;
      haddr_t address = HADDR_UNDEF;
      require(H5Dget_chunk_info(dataset_.id(), space.id(), chunk, offset, &filters, &address,
                                &size) >= 0 &&
                  address != HADDR_UNDEF && size > 0 && offset[0] % chunk_rows == 0 &&
                  offset[0] < rows_ && offset[1] < columns,
              "{}: the index of its chunks is damaged at chunk {}", place_, chunk);
    }
  }

  void read_block(uint64_t first, uint64_t count, const Handle& type, void* to) {
    const hsize_t start[2] = {first, 0}, size[2] = {count, columns_};
    const Handle space(H5Dget_space(dataset_.id()), H5Sclose);
    const Handle memory(H5Screate_simple(rank_, size, nullptr), H5Sclose);
    const bool read =
        H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, start, nullptr, size, nullptr) >= 0 &&
        H5Dread(dataset_.id(), type.id(), memory.id(), space.id(), H5P_DEFAULT, to) >= 0;
    require(read, "{}: rows {} to {} cannot be read: the file is damaged or truncated", place_,
            first, first + count - 1);
  }

  void read_lists(uint64_t first, uint64_t count, Hdf5Rows& out) {
    std::vector<hvl_t> lists(count, hvl_t{0, nullptr});
    const Handle type(H5Tvlen_create(H5T_NATIVE_INT64), H5Tclose);
    read_block(first, count, type, lists.data());
    for (uint64_t row = 0; row < count; ++row) {
      const hvl_t& list = lists[row];
      require(list.len <= static_cast<size_t>(kMaxTokens), "{}: row {} has {} numbers", place_,
              first + row, list.len);
      out.lengths[row] = static_cast<uint32_t>(list.len);
      const auto* numbers = static_cast<const int64_t*>(list.p);
      for (size_t i = 0; i < list.len; ++i) {
        out.numbers.push_back(narrow(numbers[i], first + row));
      }
    }
    const hsize_t size = count;
    const Handle memory(H5Screate_simple(1, &size, nullptr), H5Sclose);
    H5Dvlen_reclaim(type.id(), memory.id(), H5P_DEFAULT, lists.data());
  }

  int32_t narrow(int64_t number, uint64_t row) const {
    require(number >= INT32_MIN && number <= INT32_MAX,
            "{}: row {} has {}, which is not a valid id", place_, row, number);
    return static_cast<int32_t>(number);
  }

  std::string place_;
  Handle dataset_;
  int rank_ = 0;
  uint64_t rows_ = 0, columns_ = 0, chunk_rows_ = 0;
  bool is_ragged_ = false;
  std::vector<int64_t> numbers_;
};

using Arrays = std::array<std::optional<Array>, kHdf5Arrays.size()>;

void open_arrays(hid_t file, const std::string& path, Arrays& arrays) {
  for (size_t i = 0; i < arrays.size(); ++i) {
    const auto [name, required] = kHdf5Arrays[i];
    if (H5Lexists(file, name, H5P_DEFAULT) > 0) {
      arrays[i].emplace(file, path, name);
    } else {
      require(!required, "{}: has no dataset {}: expected files of create_pretraining_data.py",
              path, name);
    }
    if (!arrays[i] || i == 0) continue;
    require(arrays[i]->rows() == arrays[0]->rows(), "{}: has {} rows, input_ids has {}",
            arrays[i]->place(), arrays[i]->rows(), arrays[0]->rows());
  }
  if (arrays[kHdf5Labels]) arrays[kHdf5Labels]->require_one_column();
}

// Reads whole chunks unless they are too large, so that no chunk is decompressed twice.
uint64_t rows_at_once(const Array& ids) {
  const uint64_t row_bytes = std::max<uint64_t>(ids.columns(), 512) * sizeof(int64_t);
  const uint64_t usual = std::max<uint64_t>(1, kUsualBlockBytes / row_bytes);
  const uint64_t chunk = ids.chunk_rows();
  if (chunk == 0 || chunk > kMaxChunkBytes / row_bytes) return usual;
  return chunk >= usual ? chunk : usual / chunk * chunk;
}

}  // namespace

void read_hdf5(const Path& path, Hdf5RowsSink& sink) {
  // Turns off libhdf5's own error messages. onebit reports errors.
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  require(file.valid(), "{}: is not an HDF5 file, or is damaged or truncated", path.string());
  Arrays arrays;
  open_arrays(file.id(), path.string(), arrays);
  const uint64_t rows = arrays[0]->rows(), step = rows_at_once(*arrays[0]);
  std::array<Hdf5Rows, kHdf5Arrays.size()> block;
  for (uint64_t first = 0; first < rows; first += step) {
    const uint64_t count = std::min(step, rows - first);
    for (size_t i = 0; i < arrays.size(); ++i) {
      if (arrays[i]) arrays[i]->read(first, count, block[i]);
    }
    sink.rows(count, block);
  }
}

}  // namespace onebit::samples
