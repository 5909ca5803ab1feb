# SPDX-License-Identifier: Apache-2.0
# prof::torch: LibTorch as imported targets of our own. find_package(Torch) is not used: for a CUDA
# build it insists on nvcc and rewrites CUDA flags, while a program that only calls LibTorch needs
# neither. A CUDA wheel with or without nvcc, a CPU-only wheel and the LibTorch zip come this way.
#
# The first of these that is given decides:
#   PROF_TORCH_DIR       the folder that holds include/ and lib/
#   PROF_PYTHON          an interpreter; its installed torch (found without importing it)
#   CMAKE_PREFIX_PATH    the LibTorch zip, or what torch.utils.cmake_prefix_path prints
#   .venv                of this checkout, made by `make setup`
#
# Sets PROF_TORCH_ROOT, PROF_TORCH_VERSION (2.11.0) and PROF_TORCH_CUDA_MAJOR (13; empty for a
# CPU-only build). Code sees PROF_TORCH_CUDA where c10/cuda and ATen/cuda headers can be included.
set(PROF_TORCH_DIR "" CACHE PATH "LibTorch: the folder that holds its include/ and lib/")
set(PROF_PYTHON "$ENV{PYTHON}" CACHE STRING "LibTorch: the python whose torch is used")

# Sets `out` to the package folder of the torch that `python` would import.
function(prof_torch_of_python python out)
  set(code "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])")
  execute_process(
    COMMAND ${python} -c "${code}"
    OUTPUT_VARIABLE root OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed OR root STREQUAL "")
    message(FATAL_ERROR "PYTHON=${python} has no torch: install torch there, "
      "or leave PYTHON out and run `make setup`.")
  endif()
  set(${out} "${root}" PARENT_SCOPE)
endfunction()

# Sets `out` to the first LibTorch on CMAKE_PREFIX_PATH (variable or environment), or to nothing.
function(prof_torch_on_prefix_path out)
  set(${out} "" PARENT_SCOPE)
  cmake_path(CONVERT "$ENV{CMAKE_PREFIX_PATH}" TO_CMAKE_PATH_LIST from_environment)
  foreach(prefix IN LISTS CMAKE_PREFIX_PATH from_environment)
    # What the wheel calls its cmake_prefix_path is <root>/share/cmake.
    foreach(root IN ITEMS "${prefix}" "${prefix}/../..")
      if(EXISTS "${root}/lib/libtorch_cpu.so")
        set(${out} "${root}" PARENT_SCOPE)
        return()
      endif()
    endforeach()
  endforeach()
endfunction()

set(root "${PROF_TORCH_DIR}")
if(root STREQUAL "" AND NOT PROF_PYTHON STREQUAL "")
  prof_torch_of_python("${PROF_PYTHON}" root)
endif()
if(root STREQUAL "")
  prof_torch_on_prefix_path(root)
endif()
if(root STREQUAL "")
  file(GLOB root "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch")
endif()
if(root STREQUAL "")
  message(FATAL_ERROR "No LibTorch: run `make setup`, or name one by PROF_TORCH_DIR, PYTHON or "
    "CMAKE_PREFIX_PATH (-DPROF_LIBTORCH=OFF builds readtrace without it).")
endif()
get_filename_component(root "${root}" ABSOLUTE)  # without a last slash
if(NOT EXISTS "${root}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "No LibTorch in ${root}: lib/libtorch_cpu.so is missing there.")
endif()
set(PROF_TORCH_ROOT "${root}")

# 1. Its version: the header moved in 2.9, so the newer place is asked first.
set(api "${root}/include/torch/csrc/api/include")
set(PROF_TORCH_VERSION "0")
foreach(header IN ITEMS "${root}/include/torch/headeronly/version.h" "${api}/torch/version.h")
  if(EXISTS "${header}")
    file(STRINGS "${header}" lines REGEX "^#define TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
    if(lines)
      string(REGEX REPLACE "#define TORCH_VERSION_[A-Z]+ ([0-9]+)" "\\1" lines "${lines}")
      list(JOIN lines "." PROF_TORCH_VERSION)
      break()
    endif()
  endif()
endforeach()
if(PROF_TORCH_VERSION VERSION_LESS 2.9 OR NOT EXISTS "${root}/include/kineto/ActivityType.h")
  message(FATAL_ERROR "The LibTorch in ${root} (version ${PROF_TORCH_VERSION}) is too old or lacks "
    "Kineto's headers: 2.9 or newer is needed.")
endif()

# 2. Its parts. libtorch.so is an empty shell around the others and is left out.
set(parts torch_cpu c10)
set(PROF_TORCH_CUDA_MAJOR "")
if(EXISTS "${root}/lib/libtorch_cuda.so")
  list(APPEND parts torch_cuda c10_cuda)
  # The CUDA version that counts is that of the runtime it was linked with: libcudart.so.13.
  file(STRINGS "${root}/lib/libc10_cuda.so" line REGEX "libcudart.*\\.so\\.[0-9]+" LIMIT_COUNT 1)
  string(REGEX REPLACE ".*libcudart.*\\.so\\.([0-9]+).*" "\\1" PROF_TORCH_CUDA_MAJOR "${line}")
endif()

add_library(prof_torch INTERFACE)
add_library(prof::torch ALIAS prof_torch)
foreach(part IN LISTS parts)
  add_library(prof_torch_${part} SHARED IMPORTED GLOBAL)
  set_target_properties(prof_torch_${part} PROPERTIES IMPORTED_LOCATION "${root}/lib/lib${part}.so")
  target_link_libraries(prof_torch INTERFACE prof_torch_${part})
endforeach()
target_include_directories(prof_torch SYSTEM INTERFACE
  "${root}/include" "${api}" "${root}/include/kineto")

# 3. CUDA's own headers and libraries lie beside a wheel in nvidia/*, else in a toolkit.
if(PROF_TORCH_CUDA_MAJOR)
  # Nothing calls libtorch_cuda by name: without this the linker drops it, and with it the GPU.
  target_link_options(prof_torch INTERFACE LINKER:--no-as-needed)
  cmake_path(GET root PARENT_PATH packages)
  file(GLOB nvidia LIST_DIRECTORIES true "${packages}/nvidia/*")
  list(TRANSFORM nvidia APPEND "/include" OUTPUT_VARIABLE cuda_include)
  find_path(PROF_CUDA_INCLUDE_DIR cuda_runtime_api.h
    HINTS ${cuda_include} PATHS /usr/local/cuda/include)
  mark_as_advanced(PROF_CUDA_INCLUDE_DIR)
  if(PROF_CUDA_INCLUDE_DIR)
    list(APPEND cuda_include "${PROF_CUDA_INCLUDE_DIR}")
    list(REMOVE_DUPLICATES cuda_include)
    target_include_directories(prof_torch SYSTEM INTERFACE ${cuda_include})
    target_compile_definitions(prof_torch INTERFACE PROF_TORCH_CUDA=1)
  else()
    message(STATUS "prof: no cuda_runtime_api.h beside LibTorch: device facts are left out")
  endif()
  foreach(folder IN LISTS nvidia)
    target_link_options(prof_torch INTERFACE "LINKER:-rpath,${folder}/lib")
  endforeach()
endif()
set(kind "CPU")
if(PROF_TORCH_CUDA_MAJOR)
  set(kind "CUDA ${PROF_TORCH_CUDA_MAJOR}")
endif()
message(STATUS "prof: LibTorch ${PROF_TORCH_VERSION} (${kind}) in ${root}")
