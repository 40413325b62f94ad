#pragma once
// A run's folder: runs/NAME with config.toml, metrics.jsonl, summary.json and checkpoints/.

#include "data/file_descriptor.h"

#include <string>
#include <string_view>
#include <vector>

namespace minillm {

/// A run's folder while a process trains in it.
struct OwnedFolder {
  std::string path;      ///< as asked for, without "/" or "/." at its end
  FileDescriptor lock;   ///< see lock_run_folder
  std::string moved_to;  ///< where an older run was moved, or ""
};

struct FolderRequest {
  std::string folder;
  bool force = false;                    ///< an existing run is moved aside
  std::vector<std::string> inputs = {};  ///< files and folders the command reads; "" counts for nothing
  /// For the message about an existing run, asked only then: what else can be done with it ("go on with ..."), or "".
  std::string (*advice)(const std::string& folder) = nullptr;
};

/// Makes the folder with its checkpoints/ inside and locks it. An existing run is never overwritten: an input Error
/// that says what to do, or with `force` the old folder is moved to NAME.old (NAME.old.2, ... when taken), NAME being
/// a name and not "." or "..". A run has a file config.toml and beside it checkpoints/ or metrics.jsonl. A folder that
/// is empty, or holds only what a start killed before it wrote its config leaves (temporaries of ours, a checkpoint of
/// step 0), is free; one that holds other files is no run, and neither written to nor moved. Nor is one that an input
/// lies in.
OwnedFolder create_run_folder(const FolderRequest& request);

/// Keeps other processes from training in the folder, until the descriptor is closed or the process is gone, however it
/// ends. Throws an input Error when one does already.
FileDescriptor lock_run_folder(const std::string& folder);

/// Throws an input Error unless the folder is a run's: it has a config.toml.
void check_run_folder(const std::string& folder);

/// Throws an input Error, about --out, unless config.toml can hold the folder's name: TOML is UTF-8.
void check_folder_name(const std::string& folder);

std::string config_path(const std::string& folder);       ///< folder/config.toml
std::string metrics_path(const std::string& folder);      ///< folder/metrics.jsonl
std::string samples_path(const std::string& folder);      ///< folder/samples.jsonl
std::string summary_path(const std::string& folder);      ///< folder/summary.json
std::string layers_path(const std::string& folder);       ///< folder/layers.json
std::string checkpoints_path(const std::string& folder);  ///< folder/checkpoints

/// Whether a run's folder holds a file of this name that is written beside itself and then renamed, so that a killed
/// writer leaves `<name>.tmp.<pid>`. The others grow line by line.
bool is_replaced_whole(const std::string& name);

/// Replaces folder/config.toml whole or not at all.
void write_run_config(const std::string& folder, std::string_view toml);

}  // namespace minillm
