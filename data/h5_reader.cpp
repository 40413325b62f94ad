#include "data/h5_support.h"

#include <array>
#include <new>

namespace minillm {

struct H5Reader::State {
  std::string path;
  UserBlock block;
  h5::Handle file{-1, H5Fclose};

  [[noreturn]] void fail(const std::string& object, const std::string& what, const std::string& found = "",
                         const std::string& needed = "") const {
    fail_input({.where = fmt::format("{} {}", path, object), .what = what, .found = found, .expected = needed});
  }

  bool has(const std::string& name) const;
  h5::Handle open_dataset(const std::string& name) const;
  h5::Handle open_attribute(const std::string& object, const std::string& name) const;
  Shape shape_of(const std::string& name, const h5::Handle& dataset) const;
  H5Type type_of(const h5::Handle& dataset) const;
  void require_type(const std::string& name, H5Type found, H5Type needed) const;
  void read_values(const std::string& name, const h5::Handle& dataset, H5Type type, void* into) const;
  void read_number(const std::string& object, const std::string& name, H5Type type, void* into) const;
};

/// H5Lexists wants every group on the way to exist, so it is asked for each.
bool H5Reader::State::has(const std::string& name) const {
  h5::silence();
  for (size_t end = name.find('/', 1);; end = name.find('/', end + 1)) {
    const std::string part = name.substr(0, end);
    if (!part.empty() && part != "/" && H5Lexists(file.get(), part.c_str(), H5P_DEFAULT) <= 0) {
      return false;
    }
    if (end == std::string::npos) {
      return true;
    }
  }
}

h5::Handle H5Reader::State::open_dataset(const std::string& name) const {
  if (!has(name)) {
    fail(name, "the dataset is missing");
  }
  h5::Handle object(H5Oopen(file.get(), name.c_str(), H5P_DEFAULT), H5Oclose);
  if (!object || H5Iget_type(object.get()) != H5I_DATASET) {
    fail(name, "is a group", "", "a dataset");
  }
  return object;
}

Shape H5Reader::State::shape_of(const std::string& name, const h5::Handle& dataset) const {
  const h5::Handle space(H5Dget_space(dataset.get()), H5Sclose);
  const int rank = H5Sget_simple_extent_ndims(space.get());
  if (rank < 0 || rank > Shape::max_rank) {
    fail(name, "has an unusable shape", fmt::format("rank {}", rank), fmt::format("at most {}", Shape::max_rank));
  }
  std::array<hsize_t, Shape::max_rank> extents{};
  H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
  Shape shape;
  for (int axis = 0; axis < rank; ++axis) {
    shape.push_back(static_cast<int64_t>(extents[static_cast<size_t>(axis)]));
  }
  return shape;
}

H5Type H5Reader::State::type_of(const h5::Handle& dataset) const {
  const h5::Handle type(H5Dget_type(dataset.get()), H5Tclose);
  return h5::type_of(type.get());
}

void H5Reader::State::require_type(const std::string& name, H5Type found, H5Type needed) const {
  if (found != needed) {
    fail(name, "has the wrong type", std::string(to_string(found)), std::string(to_string(needed)));
  }
}

void H5Reader::State::read_values(const std::string& name, const h5::Handle& dataset, H5Type type, void* into) const {
  if (H5Dread(dataset.get(), h5::memory_type(type), H5S_ALL, H5S_ALL, H5P_DEFAULT, into) < 0) {
    fail(name, "cannot be read by libhdf5 (is it built with deflate?)");
  }
}

h5::Handle H5Reader::State::open_attribute(const std::string& object, const std::string& name) const {
  h5::silence();
  if (object != "/" && !has(object)) {
    fail(object, "is missing");
  }
  h5::Handle attribute(H5Aopen_by_name(file.get(), object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (!attribute) {
    fail(object, fmt::format("the attribute {} is missing", name));
  }
  return attribute;
}

void H5Reader::State::read_number(const std::string& object, const std::string& name, H5Type type, void* into) const {
  const h5::Handle attribute = open_attribute(object, name);
  const h5::Handle stored(H5Aget_type(attribute.get()), H5Tclose);
  const h5::Handle space(H5Aget_space(attribute.get()), H5Sclose);
  const H5Type found = h5::type_of(stored.get());
  if (found != type || H5Sget_simple_extent_npoints(space.get()) != 1) {
    fail(object, fmt::format("the attribute {} has the wrong type", name), std::string(to_string(found)),
         fmt::format("one {}", to_string(type)));
  }
  if (H5Aread(attribute.get(), h5::memory_type(type), into) < 0) {
    fail(object, fmt::format("the attribute {} cannot be read", name));
  }
}

H5Reader::H5Reader(const std::string& path, const H5Format& format) : state_(std::make_unique<State>()) {
  h5::silence();
  state_->path = path;
  const FileDescriptor file = open_for_reading(path);
  state_->block = check_user_block(file, path, format);
  const h5::Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  // Locking fails on some network file systems and stops a second reader on others; we only read, and files are
  // replaced whole, so there is nothing to lock.
  H5Pset_file_locking(access.get(), false, true);
  // By its descriptor: `path` may be another file by now, a checkpoint that a run has replaced.
  const std::string checked = fmt::format("/proc/self/fd/{}", file.get());
  state_->file = h5::Handle(H5Fopen(checked.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose);
  if (!state_->file) {
    fail_input(
        {.where = path, .what = "libhdf5 cannot open the file though its checksum is right", .hint = format.remedy});
  }
}

H5Reader::~H5Reader() = default;
H5Reader::H5Reader(H5Reader&&) noexcept = default;
H5Reader& H5Reader::operator=(H5Reader&&) noexcept = default;

const std::string& H5Reader::path() const {
  return state_->path;
}

int H5Reader::version() const {
  return state_->block.version;
}

const std::string& H5Reader::sha256() const {
  return state_->block.sha256;
}

bool H5Reader::has(const std::string& name) const {
  return state_->has(name);
}

std::vector<std::string> H5Reader::list(const std::string& group) const {
  std::vector<std::string> names;
  if (!has(group)) {
    return names;
  }
  const h5::Handle handle(H5Oopen(state_->file.get(), group.c_str(), H5P_DEFAULT), H5Oclose);
  if (H5Iget_type(handle.get()) != H5I_GROUP) {
    state_->fail(group, "is a dataset", "", "a group");
  }
  const auto take_name = [](hid_t, const char* name, const H5L_info_t*, void* into) -> herr_t {
    try {
      static_cast<std::vector<std::string>*>(into)->emplace_back(name);
      return 0;
    } catch (const std::bad_alloc&) {  // which must not pass through libhdf5
      return -1;
    }
  };
  // One walk: a name by its number is a walk of its own.
  if (H5Literate(handle.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, take_name, &names) < 0) {
    state_->fail(group, "its names cannot be read");
  }
  return names;
}

Shape H5Reader::shape(const std::string& dataset) const {
  return state_->shape_of(dataset, state_->open_dataset(dataset));
}

H5Type H5Reader::type(const std::string& dataset) const {
  return state_->type_of(state_->open_dataset(dataset));
}

template <class T>
std::vector<T> H5Reader::read(const std::string& dataset, int rank) const {
  const h5::Handle handle = state_->open_dataset(dataset);
  state_->require_type(dataset, state_->type_of(handle), h5::type_for<T>());
  const Shape shape = state_->shape_of(dataset, handle);
  if (shape.rank() != rank) {
    state_->fail(dataset, "has the wrong shape", to_string(shape), fmt::format("rank {}", rank));
  }
  std::vector<T> values(static_cast<size_t>(shape.numel()));
  if (!values.empty()) {
    state_->read_values(dataset, handle, h5::type_for<T>(), values.data());
  }
  return values;
}

void H5Reader::read(const std::string& dataset, const Tensor& into) const {
  const h5::Handle handle = state_->open_dataset(dataset);
  state_->require_type(dataset, state_->type_of(handle), h5::type_for(into.dtype));
  const Shape shape = state_->shape_of(dataset, handle);
  if (!(shape == into.shape)) {
    state_->fail(dataset, "has the wrong shape", to_string(shape), to_string(into.shape));
  }
  if (shape.numel() > 0) {
    state_->read_values(dataset, handle, h5::type_for(into.dtype), into.data);
  }
}

std::string H5Reader::read_bytes(const std::string& dataset) const {
  const std::vector<uint8_t> bytes = read<uint8_t>(dataset);
  return std::string(bytes.begin(), bytes.end());
}

bool H5Reader::has_attribute(const std::string& object, const std::string& name) const {
  h5::silence();
  return (object == "/" || has(object)) &&
         H5Aexists_by_name(state_->file.get(), object.c_str(), name.c_str(), H5P_DEFAULT) > 0;
}

int64_t H5Reader::int_attribute(const std::string& object, const std::string& name) const {
  int64_t value = 0;
  state_->read_number(object, name, H5Type::i64, &value);
  return value;
}

double H5Reader::double_attribute(const std::string& object, const std::string& name) const {
  double value = 0;
  state_->read_number(object, name, H5Type::f64, &value);
  return value;
}

std::string H5Reader::string_attribute(const std::string& object, const std::string& name) const {
  const h5::Handle attribute = state_->open_attribute(object, name);
  const h5::Handle type(H5Aget_type(attribute.get()), H5Tclose);
  const h5::Handle space(H5Aget_space(attribute.get()), H5Sclose);
  if (H5Tget_class(type.get()) != H5T_STRING || H5Tis_variable_str(type.get()) > 0 ||
      H5Sget_simple_extent_npoints(space.get()) != 1) {
    state_->fail(object, fmt::format("the attribute {} has the wrong type", name), "", "text of a fixed length");
  }
  std::string text(H5Tget_size(type.get()), '\0');
  if (H5Aread(attribute.get(), type.get(), text.data()) < 0) {
    state_->fail(object, fmt::format("the attribute {} cannot be read", name));
  }
  return text == std::string(1, '\0') ? "" : text;
}

template std::vector<float> H5Reader::read(const std::string&, int) const;
template std::vector<double> H5Reader::read(const std::string&, int) const;
template std::vector<int32_t> H5Reader::read(const std::string&, int) const;
template std::vector<int64_t> H5Reader::read(const std::string&, int) const;
template std::vector<uint8_t> H5Reader::read(const std::string&, int) const;
template std::vector<uint16_t> H5Reader::read(const std::string&, int) const;
template std::vector<uint32_t> H5Reader::read(const std::string&, int) const;

}  // namespace minillm
