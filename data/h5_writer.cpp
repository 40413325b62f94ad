#include "core/atomic_file.h"
#include "core/log.h"
#include "core/text.h"
#include "data/file_descriptor.h"
#include "data/h5_sink.h"
#include "data/h5_support.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>

namespace minillm {

namespace fs = std::filesystem;

namespace {

/// A link is followed, so that the file it points to is replaced and the link stays.
std::string resolve(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    fail_input({.where = path, .what = "is a folder, a file's name is needed"});
  }
  check_replaceable(path);
  if (fs::is_symlink(path, error)) {
    const fs::path target = fs::weakly_canonical(path, error);
    return error ? path : target.string();
  }
  if (!fs::is_directory(folder_of(path), error)) {
    fail_input({.where = path,
                .what = fmt::format("the folder {} does not exist", folder_of(path)),
                .hint = "mkdir -p " + shell_word(folder_of(path))});
  }
  return path;
}

/// Writing beyond RLIMIT_FSIZE must be an error to report, not a signal that kills the run.
void ignore_file_size_signal() {
  struct sigaction current {};
  if (sigaction(SIGXFSZ, nullptr, &current) == 0 && current.sa_handler == SIG_DFL) {
    std::signal(SIGXFSZ, SIG_IGN);
  }
}

}  // namespace

struct H5Writer::State {
  std::string path;
  std::string temporary;
  H5Format format;
  FileDescriptor descriptor;
  h5::Sink sink;
  h5::Handle file{-1, H5Fclose};

  [[noreturn]] void fail_library(const std::string& what) const {
    fail_work({.where = path, .what = "libhdf5 cannot " + what});
  }

  void remove_temporary() {
    file.reset();
    descriptor.close();
    unlink(temporary.c_str());
  }

  [[noreturn]] void fail_disk(int error_number, bool whole_size_known) {
    const uint64_t needed = sink.end;
    remove_temporary();
    minillm::fail_disk(path, error_number, fmt::format("{}{} bytes", whole_size_known ? "" : "more than ", needed));
  }

  void create_temporary();
  void create_file();
  h5::Handle create_dataset(const std::string& name, H5Type type, const h5::Handle& space, hid_t creation_list);
  h5::Handle open_object(const std::string& object);
  void write(const std::string& name, H5Type type, const void* values, const Shape& shape);
  void set_attribute(const std::string& object, const std::string& name, hid_t disk, hid_t memory, const void* value);
  void stamp(std::string& sha256);
};

void H5Writer::State::create_temporary() {
  remove_stale_temporaries_of(path);
  temporary = temporary_name(path);
  unlink(temporary.c_str());
  descriptor = FileDescriptor(open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!descriptor) {
    const int error_number = errno;
    if (is_system_failure(error_number)) {
      fail_disk(error_number, false);
    }
    fail_input({.where = path,
                .what = "cannot be written: " + system_error_text(error_number),
                .hint = fmt::format("choose a folder you can write to instead of {}", folder_of(path))});
  }
  struct stat old {};
  if (stat(path.c_str(), &old) == 0 && fchmod(descriptor.get(), old.st_mode & 07777) != 0) {
    log_warning("{}: its permissions cannot be kept: {}", path, system_error_text(errno));
  }
}

void H5Writer::State::create_file() {
  sink.descriptor = descriptor.get();
  const h5::Handle access(h5::sink_access_list(&sink), H5Pclose);
  const h5::Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  const bool ready = access && H5Pset_userblock(creation.get(), UserBlock::size) >= 0 &&
                     H5Pset_libver_bounds(access.get(), H5F_LIBVER_EARLIEST, H5F_LIBVER_V110) >= 0;
  if (ready) {
    file = h5::Handle(H5Fcreate(temporary.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()), H5Fclose);
  }
  if (!file) {
    fail_library("create a file");
  }
}

h5::Handle H5Writer::State::create_dataset(const std::string& name, H5Type type, const h5::Handle& space,
                                           hid_t creation_list) {
  const h5::Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(links.get(), 1);
  H5Pset_obj_track_times(creation_list, false);  // else the same contents would give other bytes every second
  h5::Handle dataset(
      H5Dcreate2(file.get(), name.c_str(), h5::disk_type(type), space.get(), links.get(), creation_list, H5P_DEFAULT),
      H5Dclose);
  if (!dataset) {
    fail_library(fmt::format("create the dataset {} (is the name taken?)", name));
  }
  return dataset;
}

void H5Writer::State::write(const std::string& name, H5Type type, const void* values, const Shape& shape) {
  h5::silence();
  const h5::Handle space = h5::make_space(shape);
  const h5::Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  h5::Handle dataset = create_dataset(name, type, space, creation.get());
  const bool written =
      shape.numel() == 0 || H5Dwrite(dataset.get(), h5::memory_type(type), H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0;
  if (!written || dataset.reset() < 0) {
    fail_library("write the dataset " + name);
  }
}

h5::Handle H5Writer::State::open_object(const std::string& object) {
  h5::silence();
  h5::Handle handle(H5Oopen(file.get(), object.c_str(), H5P_DEFAULT), H5Oclose);
  if (!handle) {
    fail_library("open " + object);
  }
  return handle;
}

void H5Writer::State::set_attribute(const std::string& object, const std::string& name, hid_t disk, hid_t memory,
                                    const void* value) {
  const h5::Handle owner = open_object(object);
  const h5::Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  const h5::Handle attribute(H5Acreate2(owner.get(), name.c_str(), disk, space.get(), H5P_DEFAULT, H5P_DEFAULT),
                             H5Aclose);
  if (!attribute || H5Awrite(attribute.get(), memory, value) < 0) {
    fail_library(fmt::format("write the attribute {} of {}", name, object));
  }
}

/// Closes the HDF5 part, hashes what the disk holds and writes the user block; everything is on the disk afterwards.
void H5Writer::State::stamp(std::string& sha256) {
  if (file.reset() < 0) {
    fail_library("close the file");
  }
  if (sink.error_number != 0) {
    fail_disk(sink.error_number, true);
  }
  sha256 = hash_behind_user_block(descriptor.get(), temporary);
  const std::string block = to_text({.format = format.name,
                                     .version = format.version,
                                     .file_bytes = file_size(descriptor.get(), temporary),
                                     .sha256 = sha256});
  errno = ENOSPC;  // a short write sets no error number; a full disk is what it means
  if (pwrite(descriptor.get(), block.data(), block.size(), 0) != static_cast<ssize_t>(block.size()) ||
      fsync(descriptor.get()) != 0) {
    fail_disk(errno, true);
  }
  const int error_number = descriptor.close();
  if (error_number != 0) {
    fail_disk(error_number, true);
  }
}

H5Writer::H5Writer(const std::string& path, const H5Format& format) : state_(std::make_unique<State>()) {
  h5::silence();
  ignore_file_size_signal();
  state_->path = resolve(path);
  state_->format = format;
  state_->create_temporary();
  try {
    state_->create_file();
  } catch (...) {
    state_->remove_temporary();
    throw;
  }
}

H5Writer::~H5Writer() {
  if (state_->file || state_->descriptor) {
    state_->remove_temporary();
  }
}

template <class T>
void H5Writer::write(const std::string& name, const T* values, const Shape& shape) {
  state_->write(name, h5::type_for<T>(), values, shape);
}

void H5Writer::write(const std::string& name, const Tensor& tensor) {
  state_->write(name, h5::type_for(tensor.dtype), tensor.data, tensor.shape);
}

void H5Writer::write_bytes(const std::string& name, std::string_view bytes) {
  state_->write(name, H5Type::u8, bytes.data(), {static_cast<int64_t>(bytes.size())});
}

void H5Writer::set_attribute(const std::string& object, const std::string& name, int64_t value) {
  state_->set_attribute(object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value);
}

void H5Writer::set_attribute(const std::string& object, const std::string& name, double value) {
  state_->set_attribute(object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value);
}

void H5Writer::set_attribute(const std::string& object, const std::string& name, std::string_view value) {
  check(value.size() <= 60000, "the attribute {} of {} is too long: {} bytes, at most 60000", name, object,
        value.size());
  const std::string text = value.empty() ? std::string(1, '\0') : std::string(value);  // HDF5 has no empty string
  const h5::Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), text.size());
  H5Tset_strpad(type.get(), H5T_STR_NULLPAD);
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  state_->set_attribute(object, name, type.get(), type.get(), text.data());
}

std::string H5Writer::commit() {
  h5::silence();
  std::string sha256;
  state_->stamp(sha256);
  if (const int error_number = put_in_place(state_->temporary, state_->path)) {
    fail_work({.where = state_->path, .what = "cannot be replaced: " + system_error_text(error_number)});
  }
  return sha256;
}

template void H5Writer::write(const std::string&, const float*, const Shape&);
template void H5Writer::write(const std::string&, const double*, const Shape&);
template void H5Writer::write(const std::string&, const int32_t*, const Shape&);
template void H5Writer::write(const std::string&, const int64_t*, const Shape&);
template void H5Writer::write(const std::string&, const uint8_t*, const Shape&);
template void H5Writer::write(const std::string&, const uint16_t*, const Shape&);
template void H5Writer::write(const std::string&, const uint32_t*, const Shape&);

namespace {
constexpr hsize_t chunk_values = 262144;
}

template <class T>
H5Stream<T>::H5Stream(H5Writer& writer, const std::string& name) : state_(*writer.state_), name_(name) {
  h5::silence();
  const hsize_t none = 0;
  const hsize_t unlimited = H5S_UNLIMITED;
  const h5::Handle space(H5Screate_simple(1, &none, &unlimited), H5Sclose);
  const h5::Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_chunk(creation.get(), 1, &chunk_values);
  H5Pset_shuffle(creation.get());
  H5Pset_deflate(creation.get(), 1);
  h5::Handle dataset = state_.create_dataset(name, h5::type_for<T>(), space, creation.get());
  dataset_ = dataset.release();
  pending_.reserve(chunk_values);
}

template <class T>
H5Stream<T>::~H5Stream() {
  // A strong close of the file may have taken the dataset with it already.
  if (dataset_ >= 0 && H5Iis_valid(dataset_) > 0) {
    H5Dclose(dataset_);
  }
}

template <class T>
void H5Stream<T>::append(const T* values, size_t count) {
  while (count > 0) {
    const size_t take = std::min(count, static_cast<size_t>(chunk_values) - pending_.size());
    pending_.insert(pending_.end(), values, values + take);
    values += take;
    count -= take;
    if (pending_.size() == chunk_values) {
      flush();
    }
  }
}

template <class T>
void H5Stream<T>::flush() {
  if (pending_.empty()) {
    return;
  }
  h5::silence();
  const hsize_t start = written_;
  const hsize_t count = pending_.size();
  const hsize_t end = start + count;
  bool ok = H5Dset_extent(dataset_, &end) >= 0;
  const h5::Handle on_disk(H5Dget_space(dataset_), H5Sclose);
  const h5::Handle in_memory(H5Screate_simple(1, &count, nullptr), H5Sclose);
  ok = ok && H5Sselect_hyperslab(on_disk.get(), H5S_SELECT_SET, &start, nullptr, &count, nullptr) >= 0 &&
       H5Dwrite(dataset_, h5::memory_type(h5::type_for<T>()), in_memory.get(), on_disk.get(), H5P_DEFAULT,
                pending_.data()) >= 0;
  if (!ok) {
    state_.fail_library("write the dataset " + name_);
  }
  if (state_.sink.error_number != 0) {
    state_.fail_disk(state_.sink.error_number, false);
  }
  written_ = end;
  pending_.clear();
}

template <class T>
void H5Stream<T>::finish() {
  flush();
  if (H5Dclose(std::exchange(dataset_, -1)) < 0) {
    state_.fail_library("close the dataset " + name_);
  }
}

template class H5Stream<uint16_t>;
template class H5Stream<uint32_t>;

}  // namespace minillm
