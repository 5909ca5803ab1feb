// SPDX-License-Identifier: Apache-2.0
//
// PyTorch's own kernels. Most are one of a few skeletons (elementwise, reduce, foreach, ...), and
// the op is the functor that the skeleton's template was given, often a lambda inside a function
// that is named after the op.
#include <algorithm>
#include <cstddef>

#include "explain/kernel_name_grammars.h"

namespace explain::names {
namespace {

// "at::native::sum_functor<float>::operator()(...)::{lambda(float, float)#1}" is sum_functor: the
// first part that is no namespace.
struct Functor {
  std::string_view name;
  std::vector<std::string_view> arguments;
};

Functor read_functor(std::string_view text) {
  const std::vector<std::string_view> parts = split_top(text, "::");
  for (const std::string_view part : parts) {
    const std::size_t end = part.find_first_of("<(");
    if (end == std::string_view::npos && part.data() != parts.back().data()) continue;
    return {part.substr(0, end), arguments_of(part, part.substr(0, end))};
  }
  return {};
}

// "mul_kernel_cuda", "MulFunctor", "CUDAFunctor_mul" are mul.
std::string op_of_identifier(std::string_view identifier) {
  if (identifier.starts_with("CUDAFunctorOn"))
    return "add of a scalar";  // ...Self_add, ...Other_add
  for (const std::string_view prefix : {"CUDAFunctor_", "launch_"}) {
    if (identifier.starts_with(prefix)) identifier.remove_prefix(prefix.size());
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::string_view suffix :
         {"_kernel", "_cuda", "_impl", "_gpu", "_out", "_functor", "_op", "_base", "_internal",
          "Functor", "Ops", "CUDA", "Kernel", "Impl", "Internal", "Template"}) {
      if (identifier.size() > suffix.size() && identifier.ends_with(suffix)) {
        identifier.remove_suffix(suffix.size());
        changed = true;
      }
    }
  }
  std::string op = words(identifier);
  std::replace(op.begin(), op.end(), ' ', '_');
  return op;
}

// The functor inside of what wraps it: gpu_kernel_impl<F>(...)::{lambda(int)#1}, ReduceOp<T, F,
// ...>.
std::string_view unwrapped(std::string_view text) {
  for (int depth = 0; depth < 8; ++depth) {
    const auto [name, arguments] = read_functor(text);
    const bool is_first = name.starts_with("gpu_kernel_impl") || name == "gpu_index_kernel";
    const bool is_second = name == "ReduceOp" || name == "func_wrapper_t";
    const std::size_t wrapped = is_first ? 0 : 1;
    if ((!is_first && !is_second) || arguments.size() <= wrapped) break;
    text = arguments[wrapped];
  }
  return text;
}

std::string op_of(std::string_view functor) {
  const auto [name, arguments] = read_functor(functor);
  const bool is_unary = name == "AUnaryFunctor" || name == "BUnaryFunctor";
  if ((!is_unary && name != "BinaryFunctor") || arguments.empty()) return op_of_identifier(name);
  return op_of_identifier(read_functor(arguments.back()).name) + (is_unary ? " by a scalar" : "");
}

// What the innermost lambda takes: "{lambda(c10::BFloat16, bool)#1}". Masks are bool, data rarely
// is.
std::string dtype_of_lambda(std::string_view functor) {
  std::string type;
  for (std::size_t at = functor.find("lambda"); at != std::string_view::npos;
       at = functor.find("lambda", at + 6)) {
    std::size_t begin = functor.find('(', at);
    if (begin == std::string_view::npos) break;
    const std::string_view list = functor.substr(begin + 1, functor.find(')', begin) - begin - 1);
    std::string found;
    for (const std::string_view parameter : split_top(list, ",")) {
      if (parameter.find(kBackReference) != std::string_view::npos) return "";
      const std::string one = dtype_of(parameter);
      if (!one.empty() && (found.empty() || found == "bool")) found = one;
    }
    if (!found.empty()) type = found;
  }
  return type;
}

std::string dtype_of_functor(std::string_view text) {
  const std::string type = dtype_of_lambda(text);
  if (!type.empty()) return type;
  return first_dtype(read_functor(text).arguments);
}

bool is_number(std::string_view argument) {
  return number_after(argument, "").has_value();
}

// In the first template argument that is neither a number nor a flag nor a plain type.
std::string_view functor_of(const Symbol& symbol) {
  for (const std::string_view argument : symbol.arguments) {
    const bool is_plain = is_number(argument) || argument == "true" || argument == "false";
    if (!is_plain && dtype_of(argument).empty()) return unwrapped(argument);
  }
  return {};
}

void set_op(KernelFamily family, std::string op, KernelName& name) {
  name.family = family;
  name.operation = std::move(op);
  if (name.family != KernelFamily::elementwise) return;
  if (name.operation == "fill") name.family = KernelFamily::fill;
  if (name.operation.starts_with("copy to ") || name.operation.ends_with("copy")) {
    name.family = KernelFamily::copy;
  }
  for (const std::string_view index : {"index", "scatter", "gather", "take", "put"}) {
    if (name.operation.starts_with(index)) name.family = KernelFamily::index;
  }
}

void read_elementwise(const Symbol& symbol, KernelName& name) {
  const std::string_view functor = functor_of(symbol);
  std::string op = op_of(functor);
  if (op == "direct_copy") op = "copy";
  if (op.ends_with("_copy") && !dtype_of(op.substr(0, op.size() - 5)).empty()) {
    op = "copy to " + dtype_of(op.substr(0, op.size() - 5));  // bfloat16_copy_kernel_cuda
  }
  set_op(KernelFamily::elementwise, op.empty() ? "elementwise kernel" : op, name);
  name.dtype = dtype_of_functor(functor);
  if (name.dtype.empty()) name.dtype = first_dtype(symbol.arguments);
  if (symbol.function == "vectorized_elementwise_kernel" && !symbol.arguments.empty()) {
    name.details.push_back(std::string(symbol.arguments[0]) + " elements per load");
  } else if (symbol.function.starts_with("elementwise_kernel")) {
    name.details.push_back("any strides");
  }
  if (contains(symbol.text, "LoadWithCast") || contains(symbol.text, "StoreWithCast")) {
    name.details.push_back("types converted on the way");
  }
}

// reduce_kernel<THREADS, OUTPUTS, ReduceOp<TYPE, FUNCTOR, ...>>
void read_reduce(const Symbol& symbol, KernelName& name) {
  std::string op = op_of(functor_of(symbol));
  if (op == "and") op = "all";
  if (op == "or") op = "any";
  set_op(KernelFamily::reduce, op.empty() ? "reduction" : op + " (reduction)", name);
  name.dtype = first_dtype(arguments_of(symbol.text, "ReduceOp"));
}

// multi_tensor_apply_kernel<METADATA, FUNCTOR<TYPE, ...>, OP...>: _foreach_ and fused optimizers
void read_foreach(const Symbol& symbol, KernelName& name) {
  const std::string_view functor = symbol.arguments.size() > 1 ? symbol.arguments[1] : "";
  std::string op = words(read_functor(functor).name);
  if (op.ends_with(" functor")) op.resize(op.size() - 8);
  // "BinaryOpScalarFunctor<float, 1, 1, 0>, std::multiplies<float>": the op stands on its own
  for (std::size_t i = 2; i < symbol.arguments.size(); ++i) {
    const std::string_view argument = symbol.arguments[i];
    if (argument.find("::") == std::string_view::npos || !dtype_of(argument).empty()) continue;
    op = words(read_functor(argument).name);
    break;
  }
  const bool is_optimizer = contains(op, "adam") || contains(op, "sgd") || contains(op, "adagrad");
  name.family = is_optimizer ? KernelFamily::optimizer : KernelFamily::elementwise;
  name.operation = "foreach over many tensors" + (op.empty() ? "" : ": " + op);
  name.dtype = first_dtype(read_functor(functor).arguments);
}

// softmax_warp_forward<IN, OUT, SUMS, LOG2_SIZE, IS_LOG, IS_MASKED>, cunn_SoftMaxForward<VECTOR,
// IN, SUMS, OUT, EPILOGUE>
void read_softmax(const Symbol& symbol, KernelName& name) {
  const bool is_backward = contains(symbol.function, "ackward");
  const bool is_warp = symbol.function.starts_with("softmax_warp");
  const auto& arguments = symbol.arguments;
  const bool is_log = (is_warp && arguments.size() > 4 && is_true(arguments[4])) ||
                      contains(symbol.text, "LogSoftMax");
  set_op(KernelFamily::softmax,
         std::string(is_log ? "log_softmax" : "softmax") + (is_backward ? " backward" : ""), name);
  name.dtype = first_dtype(arguments);
  if (!is_warp) return;
  name.details.push_back("one warp per row");
  if (arguments.size() > 3 && is_number(arguments[3]) && integers(arguments[3])[0] < 31) {
    name.details.push_back(
        concat("rows of up to ", std::to_string(1 << integers(arguments[3])[0])));
  }
  if (arguments.size() > 5 && is_true(arguments[5])) name.details.push_back("masked");
}

// triu_tril_kernel<TYPE, INDEX, IS_UPPER, ELEMENTS, INPLACE>; versions before 2.1 wrote less
void read_triangle(const Symbol& symbol, KernelName& name) {
  const auto& arguments = symbol.arguments;
  std::string op = "triu or tril";
  if (arguments.size() > 2) op = is_true(arguments[2]) ? "triu" : "tril";
  set_op(KernelFamily::triu_tril, op, name);
  name.dtype = first_dtype(arguments);
}

// index_elementwise_kernel<THREADS, ELEMENTS, gpu_index_kernel<...>...>, scatter and gather: what
// the lambda takes are offsets, so the data type is the functor's.
void read_index(const Symbol& symbol, KernelName& name) {
  const std::string_view functor = functor_of(symbol);
  const bool is_scatter_gather = contains(symbol.function, "scatter_gather");
  const bool has_functor = symbol.function == "index_elementwise_kernel" && !functor.empty();
  name.family = KernelFamily::index;
  name.operation = is_scatter_gather ? "scatter or gather"
                   : has_functor     ? op_of(functor)
                                     : op_of_identifier(symbol.function);
  name.dtype = first_dtype(read_functor(functor).arguments);
}

void read_random(const Symbol& symbol, KernelName& name) {
  name.family = KernelFamily::random;
  name.operation = op_of_identifier(symbol.function);
  name.dtype = first_dtype(symbol.arguments);
  if (!contains(symbol.function, "distribution_")) return;
  name.operation = "random numbers";
  for (const std::string_view distribution : {"normal", "bernoulli", "exponential", "uniform"}) {
    if (!contains(symbol.text, distribution)) continue;
    name.operation += concat(", ", distribution);
    break;
  }
}

void read_plain(const Symbol& symbol, KernelName& name) {
  name.operation = op_of_identifier(symbol.function);
  name.family = family_of_words(words(symbol.function));
  name.dtype = first_dtype(symbol.arguments);
  if (name.family == KernelFamily::matmul || name.family == KernelFamily::attention ||
      name.family == KernelFamily::convolution) {
    name.tensor_cores = TensorCores::unknown;
  }
}

// Kernels of PyTorch that stand in no namespace that a name shows.
bool is_without_namespace(std::string_view function) {
  static constexpr std::string_view kFunctions[] = {
      "softmax_warp_forward", "softmax_warp_backward", "elementwise_kernel_with_index",
      "masked_fill_kernel",   "compute_cuda_kernel",   "multi_tensor_apply_kernel",
      "CatArrayBatchedCopy",  "fused_dropout_kernel",
  };
  return function.starts_with("cunn_") || function.starts_with("CatArrayBatchedCopy") ||
         std::find(std::begin(kFunctions), std::end(kFunctions), function) != std::end(kFunctions);
}

}  // namespace

bool read_aten(const Symbol& symbol, KernelName& name) {
  const std::string_view function = symbol.function;
  const bool is_aten = symbol.qualified.starts_with("at::") ||
                       symbol.qualified.starts_with("c10d::") || is_without_namespace(function);
  if (!is_aten) return false;
  name.author = "PyTorch ATen";
  name.tensor_cores = TensorCores::no;
  if (contains(function, "index_elementwise") || contains(function, "scatter_gather") ||
      contains(function, "gather_kernel")) {
    read_index(symbol, name);
  } else if (contains(function, "distribution_") || contains(function, "dropout")) {
    read_random(symbol, name);
  } else if (contains(function, "elementwise_kernel") || contains(function, "elemwise_kernel")) {
    read_elementwise(symbol, name);
  } else if (function == "reduce_kernel") {
    read_reduce(symbol, name);
  } else if (function == "multi_tensor_apply_kernel") {
    read_foreach(symbol, name);
  } else if (function.starts_with("softmax_warp") || contains(function, "SoftMax")) {
    read_softmax(symbol, name);
  } else if (function.starts_with("triu_tril")) {
    read_triangle(symbol, name);
  } else if (function.starts_with("CatArrayBatchedCopy")) {
    set_op(KernelFamily::concatenate, "cat", name);
    name.dtype = first_dtype(symbol.arguments);
  } else {
    read_plain(symbol, name);
  }
  return true;
}

}  // namespace explain::names
