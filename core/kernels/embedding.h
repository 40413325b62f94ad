#pragma once
// Embedding: rows of a table by token id, and the scatter of their gradients.
//
//   y[r, :] = table[ids[r], :]              dtable[ids[r], :] += dy[r, :]
//
// R tokens, V rows of the table, d width. table, dtable [V, d]; ids [R], each in [0, V) (the caller checks); y, dy [R, d].
// An id may occur many times: its gradients are added in order of r, whatever the number of threads.

#include <cstdint>

namespace minillm::kernels {

template <class T>
void embedding_forward_reference(const T* table, const int32_t* ids, T* y, int64_t R, int64_t d);

template <class T>
void embedding_backward_reference(const T* dy, const int32_t* ids, T* dtable, int64_t R, int64_t d);

void embedding_forward(const float* table, const int32_t* ids, float* y, int64_t R, int64_t d);
void embedding_backward(const float* dy, const int32_t* ids, float* dtable, int64_t R, int64_t d);

}  // namespace minillm::kernels
