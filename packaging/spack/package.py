# SPDX-License-Identifier: BSD-3-Clause
"""Recipe for Spack. Put this folder into a repository as packages/locus; in a clone of the sources run
spack dev-build locus@main."""
from spack.package import *


class Locus(AutotoolsPackage):
    """Data-centric sampling profiler: shows which variables of an HPC program cost the time, where they were
    allocated, who touches them, and from which memory."""

    license("BSD-3-Clause")

    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("autoconf", type="build")
    depends_on("automake", type="build")
    depends_on("libtool", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("elfutils@0.180:")
    depends_on("zydis", when="target=x86_64:")
    depends_on("libpfm4")
    depends_on("hwloc@2:")
    depends_on("jansson")
    depends_on("libmicrohttpd")
    depends_on("ncurses")

    def setup_run_environment(self, env):
        env.prepend_path("CPATH", self.prefix.include)
