// SPDX-License-Identifier: Apache-2.0

// Command layout measures the readability of the layout of the Go sources, and can improve it.
//
// It counts, for each folder:
//   - structs that embed a pointer to a struct of the same package,
//   - composite literals that span several lines and have several elements on one line,
//   - statements that assign three or more values,
//   - files in the largest cycle of calls between the files of one package.
//
// With -w it puts each element of such a literal on a separate line. It also splits statements that assign several
// values if the order of evaluation cannot change the result.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "folder of the `repository`")
	flag.BoolVar(&o.write, "w", false, "rewrite literals and assignments in place")
	flag.BoolVar(&o.calls, "calls", false, "with -w: also split assignments whose values call functions; read the diff")
	flag.BoolVar(&o.list, "l", false, "list each place that is counted, and the calls of cycles")
	flag.BoolVar(&o.cycles, "cycles", false, "also print cycles of calls between files, which needs compiled packages")
	flag.Parse()

	if err := run(o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "layout:", err)
		os.Exit(1)
	}
}

// options are the parsed flags.
type options struct {
	root   string
	write  bool
	calls  bool
	list   bool
	cycles bool
}

func run(o options, out io.Writer) error {
	files, err := parseTree(o.root)
	if err != nil {
		return err
	}
	if o.write {
		return rewrite(files, o.calls)
	}
	if err := report(out, files, o.list); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	if o.cycles {
		return reportCycles(out, o.root, o.list)
	}
	return nil
}
