#pragma once
// How sublayers are joined to the residual stream: what flows between blocks, where a sublayer's norm stands, and
// whether and how its input is added back.

#include "nn/model_config.h"
#include "nn/module.h"
#include "nn/norm.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace minillm {

/// What flows from block to block.
struct Stream {
  Var x;                    ///< [B, T, d]; [B, T, n, d] where the connection keeps n streams
  std::vector<Var> writes;  ///< [B, T, d] each, where sublayers read what earlier ones wrote: the embedding comes first
  int64_t sublayers = 0;    ///< that have written, where it matters
};

/// x [B, T, d] -> n times the same [B, T, n, d]
Var copies(Var x, int64_t n);

/// One residual connection around a sublayer F with its norm N: reads the stream, runs both, writes the stream.
class Residual : public Module {
 public:
  using Module::Module;
  virtual void forward(Stream& stream, const Norm& norm, const Sublayer& sublayer) const = 0;
};

/// The two ends of the stream: embeddings go in, what the final norm reads comes out. By itself the stream is one
/// vector a token.
class StreamEnds : public Module {
 public:
  using Module::Module;
  virtual Stream enter(Var x) const { return {x, {}}; }               ///< x [B, T, d]
  virtual Var leave(const Stream& stream) const { return stream.x; }  ///< [B, T, d]
};

/// A row of the table of residual connections (config key model.residual).
struct ResidualKind {
  std::string_view name;
  std::unique_ptr<Residual> (*make)(const ModelConfig& config, const Scope& scope);
  std::unique_ptr<StreamEnds> (*make_ends)(const ModelConfig& config, const Scope& scope);
  bool has_post = false;    ///< norm_position = "post" means something: a norm behind the addition
  bool widens = false;      ///< the stream is residual_streams vectors a token
  bool normalises = false;  ///< what it hands to a sublayer is normalised already: blocks have no norms
  // For people, in the order of the tape.
  std::string_view read = "";         ///< what it makes for the sublayer; "": the sublayer reads the stream as it is
  std::string_view join = "";         ///< the name of the step behind the sublayer
  std::string_view write = "";        ///< what that does
  std::string_view write_scope = "";  ///< under the connection's own: parameters of that step; "": all are read first
};

std::span<const ResidualKind> residual_kinds();

/// The one that `config.residual` names.
const ResidualKind& residual_kind_of(const ModelConfig& config);

/// The connection that `config.residual` names, with parameters (if it has any) under `scope`
/// ("...attention_residual", "...mlp_residual").
std::unique_ptr<Residual> make_residual(const ModelConfig& config, const Scope& scope);

/// Vectors of the stream a token.
int64_t stream_count(const ModelConfig& config);

/// Its ends, with parameters under `scope` ("model.stream").
std::unique_ptr<StreamEnds> make_stream_ends(const ModelConfig& config, const Scope& scope);

/// Whether sublayers have norms of their own: not where the connection normalises, nor where model.norm is "none".
bool has_sublayer_norms(const ModelConfig& config);

/// The norm of a sublayer: make_norm's, or none where the connection normalises.
std::unique_ptr<Norm> make_sublayer_norm(const ModelConfig& config, const Scope& scope);

/// Where the norm of a sublayer stands.
enum class NormPosition : uint8_t {
  pre,              ///< x + F(N(x))      Xiong et al. 2020
  post,             ///< N(x + F(x))      Vaswani et al. 2017
  sublayer_output,  ///< x + N(F(x))      OLMo 2
};

/// A row of the table of norm positions (config key model.norm_position).
struct NormPositionKind {
  std::string_view name;
  NormPosition position;
};

std::span<const NormPositionKind> norm_position_kinds();

/// The one that `config.norm_position` names.
NormPosition norm_position_of(const ModelConfig& config);

/// F(x). Fails where F writes another shape than it reads: that would broadcast into the stream unseen.
Var checked_forward(const Sublayer& sublayer, Var x);

/// What a connection that only reads and writes makes of a sublayer: F(N(x)) or N(F(x)), dropped out. Not for post,
/// whose norm stands behind the addition.
Var run_sublayer(Var x, const Norm& norm, const Sublayer& sublayer, NormPosition position, double dropout);

}  // namespace minillm
