# Packages (scripts/package): `cleave`, which runs on a bare Debian 12, `cleave-mpi`, and `cleave-dev`, headers, archives and the tools that need
# LLVM 22.
#
#   cleave_0.1.0_amd64.deb       names the packages of Debian that it needs, as dpkg-shlibdeps finds them
#   cleave-0.1.0-x86_64.tar.gz   has these libraries next to its own, all but the C and C++ ones

include(GNUInstallDirs)
install(FILES README.md CHANGELOG.md SECURITY.md docs/dependencies.md DESTINATION share/doc/cleave)
install(FILES LICENSE DESTINATION share/doc/cleave RENAME copyright)
install(FILES LICENSE DESTINATION share/doc/cleave-dev RENAME copyright COMPONENT dev)
install(FILES LICENSE DESTINATION share/doc/cleave-mpi RENAME copyright COMPONENT mpi)

# What is inside, with versions and licenses (CycloneDX); of Debian's packages versions are those that were built with.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(sbom "${PROJECT_BINARY_DIR}/share/doc/cleave/sbom.json")
add_custom_command(OUTPUT "${sbom}" COMMAND ${Python3_EXECUTABLE} "${PROJECT_SOURCE_DIR}/python/tools/write_sbom.py" ${PROJECT_VERSION} "${sbom}"
  DEPENDS "${PROJECT_SOURCE_DIR}/python/tools/write_sbom.py" VERBATIM)
add_custom_target(cleave-sbom ALL DEPENDS "${sbom}")
install(FILES "${sbom}" DESTINATION share/doc/cleave)

# Of the tarball alone: `cpack` of a .deb does not install this component.
install(CODE [[
  file(GET_RUNTIME_DEPENDENCIES EXECUTABLES $<TARGET_FILE:cleave> $<TARGET_FILE:cleave-opt> $<TARGET_FILE:cleave-run> RESOLVED_DEPENDENCIES_VAR needed UNRESOLVED_DEPENDENCIES_VAR missing
    PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|stdc\\+\\+|gcc_s)\\.so" "^lib(LLVM|MLIR)" "^libcleave" POST_EXCLUDE_REGEXES "/libcleave_")
  foreach(file IN LISTS needed)
    file(INSTALL "${file}" DESTINATION "${CMAKE_INSTALL_PREFIX}/lib" FOLLOW_SYMLINK_CHAIN)
  endforeach()
]] COMPONENT libraries EXCLUDE_FROM_ALL)

set(CPACK_PACKAGE_NAME cleave)
set(CPACK_PACKAGE_VENDOR "The Cleave authors")
set(CPACK_PACKAGE_CONTACT "The Cleave authors <cleave@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "SPMD partitioner of ONNX models")
set(CPACK_PACKAGE_FILE_NAME "cleave-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_STRIP_FILES ON)
set(CPACK_PROJECT_CONFIG_FILE "${PROJECT_SOURCE_DIR}/cmake/CleavePackageKinds.cmake")
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}/lib")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_CLEAVE_PACKAGE_NAME cleave)
set(CPACK_DEBIAN_CLEAVE_DESCRIPTION "Takes one ONNX model and a mesh of devices, and makes a program for each device that computes the same.")
set(CPACK_DEBIAN_MPI_PACKAGE_NAME cleave-mpi)
set(CPACK_DEBIAN_MPI_DESCRIPTION "Ranks of Cleave's programs as processes of Open MPI.")
set(CPACK_DEBIAN_MPI_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "cleave (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME cleave-dev)
set(CPACK_DEBIAN_DEV_DESCRIPTION "Cleave as a library, and its tools for compiler engineers. Headers, archives, a CMake package, and the tools that need LLVM 22.")
set(CPACK_DEBIAN_DEV_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "cleave (= ${PROJECT_VERSION})")
include(CPack)
