#include "autograd/parameter.h"

#include "core/memory.h"
#include "core/parallel.h"
#include "core/rng.h"

#include <algorithm>
#include <cmath>

namespace minillm {

namespace {

// Parameters start at multiples of 64 bytes of float32, so that vector loads never straddle two of them.
constexpr int64_t alignment_elements = 16;

int64_t padded(int64_t elements) {
  return (elements + alignment_elements - 1) / alignment_elements * alignment_elements;
}

/// The part of a flat buffer that belongs to a parameter; with an empty buffer only the shape is set.
Tensor view_of(const Tensor& flat, const Parameter& parameter) {
  return flat ? flat.rows(parameter.offset, parameter.numel()).reshape(parameter.shape)
              : Tensor{nullptr, parameter.shape, flat.dtype};
}

/// Calls visit(named rows, their view) for each slice of a parameter, `whole` being its view.
template <class Visit>
void for_each_slice(const Parameter& parameter, const Tensor& whole, Visit visit) {
  int64_t first_row = 0;
  for (const NamedRows& part : parameter.slices) {
    const bool is_scalar = parameter.shape.rank() == 0;
    visit(part, is_scalar ? whole : whole.rows(first_row, part.rows));
    first_row += part.rows;
  }
}

double draw(const Init& init, RandomStream& stream) {
  switch (init.kind) {
    case Init::Kind::normal: return init.value * stream.normal();
    case Init::Kind::log_uniform: return std::log(init.value * (1 - stream.uniform()));
    case Init::Kind::constant: break;
  }
  return init.value;
}

template <class T>
void fill(T* values, int64_t count, const Init& init, const RandomStream& stream) {
  constexpr int64_t chunk = 1 << 14;  // even: normal numbers are made in pairs, from a draw each
  parallel_for(count, chunk, [=, &init, &stream](int64_t begin, int64_t end) {
    RandomStream from_begin = stream;
    from_begin.skip(static_cast<uint64_t>(begin));
    for (int64_t i = begin; i < end; ++i) {
      values[i] = static_cast<T>(draw(init, from_begin));
    }
  });
}

}  // namespace

Parameter& ParameterStore::declare(std::string name, Shape shape, Init init) {
  const bool is_matrix = shape.rank() >= 2;
  return declare_decayed(std::move(name), shape, init, is_matrix);
}

Parameter& ParameterStore::declare_decayed(std::string name, Shape shape, Init init, bool decay) {
  const int64_t rows = shape.rank() == 0 ? 1 : shape[0];
  return add({.name = name, .shape = shape, .slices = {{name, rows, init}}, .decay = decay, .value = {}, .grad = {}});
}

Parameter& ParameterStore::declare_buffer(std::string name, Shape shape, double value) {
  Parameter& parameter = declare_decayed(std::move(name), shape, Init::constant(value), false);
  parameter.is_buffer = true;
  return parameter;
}

void ParameterStore::updated() {
  for (UpdateHook* hook : hooks_) {
    hook->after_update();
  }
}

Parameter& ParameterStore::declare_merged(std::string name, std::vector<NamedRows> slices, int64_t columns) {
  int64_t rows = 0;
  for (const NamedRows& part : slices) {
    rows += part.rows;
  }
  const Shape shape = columns > 0 ? Shape{rows, columns} : Shape{rows};
  return add({.name = std::move(name),
              .shape = shape,
              .slices = std::move(slices),
              .decay = columns > 0,
              .value = {},
              .grad = {}});
}

Parameter& ParameterStore::add(Parameter parameter) {
  check(!allocated(), "parameter {} was declared after the store took its memory", parameter.name);
  for (const NamedRows& part : parameter.slices) {
    check(taken_names_.insert(part.name).second, "parameter {} was declared twice", part.name);
  }
  parameters_.push_back(std::move(parameter));
  return parameters_.back();
}

void ParameterStore::allocate(DType dtype, bool with_gradients) {
  check(!allocated(), "the parameter store took its memory already");
  int64_t elements = 0;
  for (const bool matrices : {true, false}) {
    for (Parameter& parameter : parameters_) {
      if ((parameter.shape.rank() >= 2) == matrices) {
        parameter.offset = elements;
        elements += padded(parameter.numel());
      }
    }
  }
  weights_ = Buffer({elements}, dtype);
  for (Parameter& parameter : parameters_) {
    parameter.value = view_of(weights_.tensor(), parameter);
    parameter.grad = view_of({}, parameter);
  }
  if (with_gradients) {
    allocate_gradients();
  }
}

void ParameterStore::allocate_gradients() {
  check(allocated(), "gradients stand beside weights: call ParameterStore::allocate first");
  if (gradients_.tensor()) {
    return;
  }
  gradients_ = Buffer(weights().shape, dtype());
  for (Parameter& parameter : parameters_) {
    parameter.grad = view_of(gradients_.tensor(), parameter);
  }
}

void ParameterStore::initialize(uint64_t seed) {
  for (Parameter& parameter : parameters_) {
    for_each_slice(parameter, parameter.value, [seed](const NamedRows& part, const Tensor& rows) {
      const RandomStream stream(random_key(seed, "init", part.name));
      if (rows.dtype == DType::float64) {
        fill(rows.as<double>(), rows.numel(), part.init, stream);
      } else {
        fill(rows.as<float>(), rows.numel(), part.init, stream);
      }
    });
  }
}

void ParameterStore::zero_gradients() {
  for (Parameter& parameter : parameters_) {
    parameter.grad_is_fresh = true;
    mark_unused(parameter.grad.data, parameter.grad ? parameter.grad.bytes() : 0);
  }
}

void ParameterStore::finish_gradients() {
  for (Parameter& parameter : parameters_) {
    if (parameter.grad_is_fresh && parameter.grad) {
      mark_used(parameter.grad.data, parameter.grad.bytes());
      fill_zero(parameter.grad);
      parameter.grad_is_fresh = false;
    }
  }
}

std::vector<NamedTensor> ParameterStore::named_tensors() const {
  const std::vector<Tensor> values = views(weights_.tensor());
  const std::vector<Tensor> grads = views(gradients_.tensor());
  std::vector<NamedTensor> named;
  for (const Parameter& parameter : parameters_) {
    for (const NamedRows& part : parameter.slices) {
      const size_t i = named.size();
      named.push_back({part.name, values[i], grads[i], parameter.decay, parameter.is_buffer});
    }
  }
  return named;
}

std::vector<std::string_view> ParameterStore::names() const {
  std::vector<std::string_view> all;
  for (const Parameter& parameter : parameters_) {
    for (const NamedRows& part : parameter.slices) {
      all.push_back(part.name);
    }
  }
  return all;
}

int64_t ParameterStore::count() const {
  int64_t elements = 0;
  for (const Parameter& parameter : parameters_) {
    elements += parameter.is_buffer ? 0 : parameter.numel();
  }
  return elements;
}

std::vector<Tensor> ParameterStore::views(const Tensor& flat) const {
  std::vector<Tensor> all;
  for (const Parameter& parameter : parameters_) {
    for_each_slice(parameter, view_of(flat, parameter),
                   [&all](const NamedRows&, const Tensor& rows) { all.push_back(rows); });
  }
  return all;
}

}  // namespace minillm
