# SPDX-License-Identifier: Apache-2.0
# PROF_CUDA: whether .cu files are built. AUTO builds them where an nvcc is found whose major
# version is LibTorch's and that compiles an empty .cu with this machine's compiler and C library (a
# CUDA older than the C library often does not); otherwise one line says why not, and the build goes
# on without them. ON makes that line an error. Sets PROF_HAVE_CUDA.
set(PROF_CUDA "AUTO" CACHE STRING "Build CUDA kernels: AUTO, ON or OFF")
set_property(CACHE PROF_CUDA PROPERTY STRINGS AUTO ON OFF)

# Sets `why_not` to the reason why `nvcc` is of no use here, or to nothing.
function(prof_check_nvcc nvcc why_not)
  set(${why_not} "" PARENT_SCOPE)
  execute_process(COMMAND ${nvcc} --version OUTPUT_VARIABLE text ERROR_QUIET RESULT_VARIABLE failed)
  if(failed OR NOT text MATCHES "release ([0-9]+)\\.([0-9]+)")
    set(${why_not} "${nvcc} does not run" PARENT_SCOPE)
    return()
  endif()
  if(NOT CMAKE_MATCH_1 EQUAL PROF_TORCH_CUDA_MAJOR)
    set(version "${CMAKE_MATCH_1}.${CMAKE_MATCH_2}")
    set(${why_not} "${nvcc} is CUDA ${version}, LibTorch was built with ${PROF_TORCH_CUDA_MAJOR}"
      PARENT_SCOPE)
    return()
  endif()
  file(WRITE "${CMAKE_BINARY_DIR}/CMakeFiles/empty.cu" "")
  execute_process(
    COMMAND ${nvcc} -std=c++20 -ccbin ${CMAKE_CXX_COMPILER} -c empty.cu -o empty.o
    WORKING_DIRECTORY "${CMAKE_BINARY_DIR}/CMakeFiles"
    OUTPUT_QUIET ERROR_VARIABLE errors RESULT_VARIABLE failed)
  if(failed)
    string(REGEX MATCH "[^\n]*error[^\n]*" first "${errors}")
    set(${why_not}
      "${nvcc} cannot compile an empty file with this compiler and C library (${first})"
      PARENT_SCOPE)
  endif()
endfunction()

set(PROF_HAVE_CUDA OFF)
if(PROF_CUDA)  # AUTO and ON
  set(reason "LibTorch is a CPU build")
  if(PROF_TORCH_CUDA_MAJOR)
    # 1. The one that the user names, else the system's, else the wheel's beside LibTorch.
    if(CMAKE_CUDA_COMPILER)
      set(candidates "${CMAKE_CUDA_COMPILER}")
    elseif(NOT "$ENV{CUDACXX}" STREQUAL "")
      set(candidates "$ENV{CUDACXX}")
    else()
      find_program(PROF_NVCC nvcc PATHS /usr/local/cuda/bin)
      mark_as_advanced(PROF_NVCC)
      cmake_path(GET PROF_TORCH_ROOT PARENT_PATH packages)
      set(candidates)
      foreach(nvcc IN ITEMS "${PROF_NVCC}" "${packages}/nvidia/cu${PROF_TORCH_CUDA_MAJOR}/bin/nvcc")
        if(EXISTS "${nvcc}")
          list(APPEND candidates "${nvcc}")
        endif()
      endforeach()
    endif()
    # 2. The first that fits.
    set(reason "no nvcc on PATH or in /usr/local/cuda")
    foreach(nvcc IN LISTS candidates)
      prof_check_nvcc("${nvcc}" reason)
      if(reason STREQUAL "")
        set(CMAKE_CUDA_COMPILER "${nvcc}")
        break()
      endif()
    endforeach()
  endif()
  if(reason STREQUAL "")
    set(PROF_HAVE_CUDA ON)
    set(CMAKE_CUDA_HOST_COMPILER "${CMAKE_CXX_COMPILER}" CACHE FILEPATH "nvcc's C++ compiler")
    set(CMAKE_CUDA_ARCHITECTURES 80 90a CACHE STRING "GPUs that kernels are compiled for")
    enable_language(CUDA)
    if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has it
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    endif()
    message(STATUS "prof: CUDA kernels are built with ${CMAKE_CUDA_COMPILER} "
      "(CUDA ${CMAKE_CUDA_COMPILER_VERSION})")
  elseif(PROF_CUDA STREQUAL "AUTO")
    message(STATUS "prof: no CUDA kernels: ${reason}")
  else()
    message(FATAL_ERROR "PROF_CUDA=${PROF_CUDA}, but ${reason}.")
  endif()
endif()
