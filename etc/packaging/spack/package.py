# SPDX-License-Identifier: MIT
"""lowbits for Spack: put this folder as packages/lowbits into a repository of yours."""

from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *


class Lowbits(MakefilePackage):
    """Keeps language-model training alive on a Slurm cluster that somebody else administers."""

    homepage = "https://lowbits.invalid"
    # from a clone: spack dev-build lowbits@main
    git = "https://lowbits.invalid/lowbits.git"

    license("MIT AND GPL-2.0-or-later", when="+slurm")
    license("MIT", when="~slurm")

    version("main", branch="main")

    variant("slurm", default=True, description="Speak to Slurm by libslurm, too")
    variant("cuda", default=False, description="Train on GPUs of NVIDIA")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("curl")
    depends_on("jansson")
    depends_on("libuv")
    depends_on("ncurses")
    depends_on("pcre2")
    depends_on("sqlite@3.37:")
    depends_on("tomlplusplus")
    depends_on("xxhash")
    depends_on("zlib-api")
    depends_on("zstd")
    depends_on("slurm@20-11:", when="+slurm")
    depends_on("cuda@12:", when="+cuda")

    # lbrun is linked against the archives of these: it starts on bare compute nodes
    depends_on("jansson~shared")
    depends_on("pcre2+pic")
    depends_on("zstd libs=shared,static")

    @property
    def make_flags(self):
        flags = ["PREFIX=" + self.prefix]
        flags.append("CUDA=1" if self.spec.satisfies("+cuda") else "CUDA=0")
        if self.spec.satisfies("~slurm"):
            flags.append("HAVE_SLURM=")
        return flags

    def build(self, spec, prefix):
        make(*self.make_flags)

    def install(self, spec, prefix):
        make("install", *self.make_flags)
