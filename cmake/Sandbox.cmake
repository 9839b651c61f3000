# Build rules shared by all folders.

add_compile_options(-Wall -Wextra -Wshadow -Wstrict-prototypes -Wno-unused-parameter
                    -fno-strict-aliasing -fstack-protector-strong -ffunction-sections
                    -fdata-sections)
add_compile_definitions(_GNU_SOURCE SANDBOX_VERSION="${PROJECT_VERSION}"
                        $<$<CONFIG:RelWithDebInfo,Release>:_FORTIFY_SOURCE=2>)
if(SANDBOX_WERROR)
    add_compile_options(-Werror)
endif()
if(SANDBOX_SANITIZE)
    add_compile_options(-fsanitize=${SANDBOX_SANITIZE} -fno-omit-frame-pointer
                        -fno-sanitize-recover=undefined)
    add_link_options(-fsanitize=${SANDBOX_SANITIZE})
endif()
if(SANDBOX_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# nng ships no pkg-config file on Debian 12.
function(sandbox_find_nng)
    find_path(NNG_INCLUDE_DIR nng/nng.h REQUIRED)
    find_library(NNG_LIBRARY nng REQUIRED)
    add_library(nng::shared UNKNOWN IMPORTED GLOBAL)
    set_target_properties(nng::shared PROPERTIES IMPORTED_LOCATION ${NNG_LIBRARY}
                          INTERFACE_INCLUDE_DIRECTORIES ${NNG_INCLUDE_DIR})
endfunction()

# Debian 12's mbedTLS ships no pkg-config file either; it is three libraries.
function(sandbox_find_mbedtls)
    find_path(MBEDTLS_INCLUDE_DIR mbedtls/ssl.h REQUIRED)
    set(libraries)
    foreach(name mbedtls mbedx509 mbedcrypto)
        find_library(${name}_LIBRARY ${name} REQUIRED)
        list(APPEND libraries ${${name}_LIBRARY})
    endforeach()
    add_library(mbedtls::shared INTERFACE IMPORTED GLOBAL)
    set_target_properties(mbedtls::shared PROPERTIES
                          INTERFACE_INCLUDE_DIRECTORIES ${MBEDTLS_INCLUDE_DIR}
                          INTERFACE_LINK_LIBRARIES "${libraries}")
endfunction()

# msgpack-c is called msgpackc or msgpack-c, by version.
function(sandbox_find_msgpack)
    find_path(MSGPACK_INCLUDE_DIR msgpack.h REQUIRED)
    find_library(MSGPACK_LIBRARY NAMES msgpack-c msgpackc REQUIRED)
    find_library(MSGPACK_STATIC_LIBRARY NAMES libmsgpack-c.a libmsgpackc.a REQUIRED)
    foreach(kind shared static)
        add_library(msgpack::${kind} UNKNOWN IMPORTED GLOBAL)
        set_target_properties(msgpack::${kind} PROPERTIES
                              INTERFACE_INCLUDE_DIRECTORIES ${MSGPACK_INCLUDE_DIR})
    endforeach()
    set_target_properties(msgpack::shared PROPERTIES IMPORTED_LOCATION ${MSGPACK_LIBRARY})
    set_target_properties(msgpack::static PROPERTIES IMPORTED_LOCATION ${MSGPACK_STATIC_LIBRARY})
endfunction()

# Programs whose tests run under the thread sanitizer too: `ctest -L nng`.
add_custom_target(nng-tests)

# At its end a program under the thread sanitizer sleeps for a second, to see races of threads that
# still run; libcheck forks each test, so that a suite of 88 slept for 88 s.
set(SANDBOX_TSAN_OPTIONS
    "suppressions=${CMAKE_SOURCE_DIR}/tests/support/tsan.supp:atexit_sleep_ms=50")

# sandbox_unit_test(NAME name SOURCES file... LIBRARIES target... [LABELS label...] [TIMEOUT s])
# One libcheck program, one ctest entry `unit.<name>`. Label `nng`: talks over nng.
function(sandbox_unit_test)
    cmake_parse_arguments(TEST "" "NAME;TIMEOUT" "SOURCES;LIBRARIES;LABELS" ${ARGN})
    add_executable(unit-${TEST_NAME} ${TEST_SOURCES})
    target_include_directories(unit-${TEST_NAME} PRIVATE ${CMAKE_SOURCE_DIR}/tests/support)
    target_link_libraries(unit-${TEST_NAME} PRIVATE ${TEST_LIBRARIES} PkgConfig::CHECK)
    set_target_properties(unit-${TEST_NAME} PROPERTIES
                          RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_test(NAME unit.${TEST_NAME} COMMAND unit-${TEST_NAME})
    if(NOT TEST_TIMEOUT)
        set(TEST_TIMEOUT 120)
    endif()
    set_tests_properties(unit.${TEST_NAME} PROPERTIES LABELS "${TEST_LABELS}")
    if("nng" IN_LIST TEST_LABELS)
        add_dependencies(nng-tests unit-${TEST_NAME})
    endif()
    set_tests_properties(unit.${TEST_NAME} PROPERTIES TIMEOUT ${TEST_TIMEOUT}
                         ENVIRONMENT "CK_DEFAULT_TIMEOUT=60;SANDBOX_BIN=${CMAKE_BINARY_DIR}/bin;TSAN_OPTIONS=${SANDBOX_TSAN_OPTIONS}")
endfunction()

# sandbox_fuzz_target(NAME name SOURCES file... LIBRARIES target...)
# A libFuzzer program and a short run of it, `fuzz.<name>`; only with -DSANDBOX_FUZZ=ON.
# A folder corpus/<name> beside the target holds its seeds.
function(sandbox_fuzz_target)
    if(NOT SANDBOX_FUZZ)
        return()
    endif()
    cmake_parse_arguments(FUZZ "" "NAME" "SOURCES;LIBRARIES" ${ARGN})
    add_executable(fuzz-${FUZZ_NAME} ${FUZZ_SOURCES})
    target_link_libraries(fuzz-${FUZZ_NAME} PRIVATE ${FUZZ_LIBRARIES})
    target_link_options(fuzz-${FUZZ_NAME} PRIVATE -fsanitize=fuzzer)
    set(corpus ${CMAKE_BINARY_DIR}/fuzz-corpus/${FUZZ_NAME})
    file(MAKE_DIRECTORY ${corpus})
    set(seeds ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${FUZZ_NAME})
    if(NOT EXISTS ${seeds})
        set(seeds)
    endif()
    add_test(NAME fuzz.${FUZZ_NAME}
             COMMAND fuzz-${FUZZ_NAME} -max_total_time=8 -timeout=10 -rss_limit_mb=1024
                     -artifact_prefix=${CMAKE_BINARY_DIR}/ ${corpus} ${seeds})
    set_tests_properties(fuzz.${FUZZ_NAME} PROPERTIES TIMEOUT 120)
endfunction()
