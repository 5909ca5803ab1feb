# SPDX-License-Identifier: Apache-2.0
# prof::warnings: what our own code is compiled with; errors only where this is the top project.
add_library(prof_warnings INTERFACE)
add_library(prof::warnings ALIAS prof_warnings)
target_compile_options(prof_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion>)
if(PROJECT_IS_TOP_LEVEL)
  target_compile_options(prof_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
