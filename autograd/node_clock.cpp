#include "autograd/node_clock.h"

#include <algorithm>

namespace minillm {

void NodeClock::move_to(NodeId node, Pass pass) {
  stop();
  const auto i = static_cast<size_t>(node);
  spent_.resize(std::max(spent_.size(), i + 1));
  now_ = pass == Pass::forward ? &spent_[i].forward : &spent_[i].backward;
  since_ = Clock::now();
}

void NodeClock::stop() {
  if (now_ != nullptr) {
    *now_ += std::chrono::duration<double>(Clock::now() - since_).count();
    now_ = nullptr;
  }
}

NodeClock::Seconds NodeClock::seconds(NodeId id) const {
  const auto i = static_cast<size_t>(id);
  return i < spent_.size() ? spent_[i] : Seconds();
}

}  // namespace minillm
