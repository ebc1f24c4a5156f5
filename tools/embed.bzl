"""Text files as part of a program, so that it runs from wherever it is copied."""

load("@rules_cc//cc:defs.bzl", "cc_library")

def embedded_files(name, srcs, namespace):
    """A cc_library with header NAME.h declaring `const std::vector<heddle::EmbeddedFile>& NAMESPACE::EmbeddedFiles()`.

    Args:
      name: of the library and its header.
      srcs: text files; each is found under its base name.
      namespace: C++ namespace of the function.
    """
    native.genrule(
        name = name + "_source",
        srcs = srcs,
        outs = [name + ".cc", name + ".h"],
        cmd = """
            set -- $(OUTS); source=$$1; header=$$2
            { echo '#pragma once'
              echo '#include <vector>'
              echo '#include "tools/embedded_file.h"'
              echo 'namespace %s { const std::vector<heddle::EmbeddedFile>& EmbeddedFiles(); }'
            } > $$header
            { echo '#include "%s/%s.h"'
              echo 'namespace %s {'
              echo 'const std::vector<heddle::EmbeddedFile>& EmbeddedFiles() {'
              echo '  static const std::vector<heddle::EmbeddedFile>& files = *new std::vector<heddle::EmbeddedFile>{'
              for file in $(SRCS); do
                printf '{"%%s", R"__FILE__(' "$$(basename $$file)"; cat $$file; echo ')__FILE__"},'
              done
              echo '  }; return files; }}'
            } > $$source
        """ % (namespace, native.package_name(), name, namespace),
    )
    cc_library(
        name = name,
        srcs = [name + ".cc"],
        hdrs = [name + ".h"],
        deps = ["//tools:embedded_file"],
    )

def embedded_program(name, program, symbol):
    """A cc_library that holds a program's bytes between `_binary_SYMBOL_start` and `_binary_SYMBOL_end`.

    Args:
      name: of the library.
      program: label of the cc_binary.
      symbol: C identifier.
    """
    native.genrule(
        name = name + "_object",
        srcs = [program],
        outs = [name + ".pic.o"],
        cmd = """
            object=$$PWD/$@; folder=$$(mktemp -d)
            cp $< $$folder/%s && chmod u+w $$folder/%s && strip $$folder/%s
            (cd $$folder && ld -r -b binary -z noexecstack -o $$object %s); rm -r $$folder
        """ % (symbol, symbol, symbol, symbol),
    )
    cc_library(
        name = name,
        srcs = [name + ".pic.o"],
        alwayslink = True,
    )
