#include "data/h5_sink.h"

#include "data/h5_support.h"

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

namespace minillm::h5 {

namespace {

/// What libhdf5 passes back to us: its own part first, as the driver interface asks.
struct SinkFile {
  H5FD_t base{};
  Sink* sink = nullptr;
  haddr_t end_of_allocation = 0;
};

Sink& sink_of(const H5FD_t* file) {
  return *reinterpret_cast<const SinkFile*>(file)->sink;
}

// Extern "C" would be stricter; every compiler we build with uses one calling convention for both.
H5FD_t* sink_open(const char*, unsigned, hid_t access_list, haddr_t) {
  const void* info = H5Pget_driver_info(access_list);
  auto* file = new (std::nothrow) SinkFile;
  if (info == nullptr || file == nullptr) {
    delete file;
    return nullptr;
  }
  std::memcpy(&file->sink, info, sizeof(file->sink));  // NOLINT(bugprone-sizeof-expression): the pointer is meant
  return &file->base;
}

herr_t sink_close(H5FD_t* file) {
  delete reinterpret_cast<SinkFile*>(file);
  return 0;
}

haddr_t sink_get_eoa(const H5FD_t* file, H5FD_mem_t) {
  return reinterpret_cast<const SinkFile*>(file)->end_of_allocation;
}

herr_t sink_set_eoa(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  reinterpret_cast<SinkFile*>(file)->end_of_allocation = address;
  sink_of(file).end = address;
  return 0;
}

haddr_t sink_get_eof(const H5FD_t* file, H5FD_mem_t) {
  return sink_of(file).end;
}

herr_t sink_query(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_ACCUMULATE_METADATA;
  return 0;
}

herr_t sink_read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, size_t size, void* buffer) {
  char* into = static_cast<char*>(buffer);
  std::memset(into, 0, size);  // what was never written reads as zero, as behind the end of a file
  size_t done = 0;
  while (done < size) {
    const ssize_t got = pread(sink_of(file).descriptor, into + done, size - done, static_cast<off_t>(address + done));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      break;
    }
    done += static_cast<size_t>(got);
  }
  return 0;
}

herr_t sink_write(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, size_t size, const void* buffer) {
  Sink& sink = sink_of(file);
  const char* from = static_cast<const char*>(buffer);
  size_t done = 0;
  while (done < size && sink.error_number == 0) {
    const ssize_t put = pwrite(sink.descriptor, from + done, size - done, static_cast<off_t>(address + done));
    if (put < 0 && errno == EINTR) {
      continue;
    }
    if (put <= 0) {
      sink.error_number = put < 0 ? errno : ENOSPC;
    } else {
      done += static_cast<size_t>(put);
    }
  }
  return 0;
}

/// The file must be as long as its superblock says, also where the last bytes were reserved and never written.
herr_t sink_truncate(H5FD_t* file, hid_t, hbool_t) {
  Sink& sink = sink_of(file);
  if (sink.error_number == 0 && ftruncate(sink.descriptor, static_cast<off_t>(sink.end)) != 0) {
    sink.error_number = errno;
  }
  return 0;
}

H5FD_class_t make_driver() {
  H5FD_class_t driver{};
#if H5_VERSION_GE(1, 13, 0)
  driver.version = H5FD_CLASS_VERSION;
  driver.value = static_cast<H5FD_class_value_t>(510);  // 256..511: for use inside one program
#endif
  driver.name = "minillm-sink";
  driver.maxaddr = static_cast<haddr_t>(INT64_MAX);
  driver.fc_degree = H5F_CLOSE_STRONG;
  driver.fapl_size = sizeof(Sink*);  // NOLINT(bugprone-sizeof-expression): the pointer is meant
  driver.open = sink_open;
  driver.close = sink_close;
  driver.query = sink_query;
  driver.get_eoa = sink_get_eoa;
  driver.set_eoa = sink_set_eoa;
  driver.get_eof = sink_get_eof;
  driver.read = sink_read;
  driver.write = sink_write;
  driver.truncate = sink_truncate;
  const H5FD_mem_t free_lists[] = H5FD_FLMAP_DICHOTOMY;
  std::memcpy(driver.fl_map, free_lists, sizeof driver.fl_map);
  return driver;
}

}  // namespace

int64_t sink_access_list(Sink* sink) {
  silence();
  static const H5FD_class_t driver = make_driver();
  static const hid_t driver_id = H5FDregister(&driver);
  Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  if (H5Pset_driver(access.get(), driver_id, &sink) < 0) {
    return -1;
  }
  return access.release();
}

}  // namespace minillm::h5
