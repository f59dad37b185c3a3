// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"
	logsv1 "k8s.io/component-base/logs/api/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/options"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/version"
)

// parse parses the flags. If end is true, the program must exit with status: the flags are invalid, or the user
// requested the help or the version.
func parse(fs *pflag.FlagSet, o *options.Options, args []string, stdout, stderr io.Writer) (status int, end bool) {
	fs.Usage = func() {} // parse writes it
	err := fs.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		_ = o.WriteHelp(stdout)
		return 0, true
	case err == nil && o.Version:
		fmt.Fprintln(stdout, version.Long())
		return 0, true
	case err == nil && fs.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q: the manager takes only flags", fs.Arg(0))
	case err == nil:
		err = errors.Join(o.Validate(), logsv1.ValidateAndApply(o.Logs, nil))
	}
	if err != nil {
		fmt.Fprintf(stderr, "%v\nRun manager --help for a list of flags.\n", err)
		return 2, true
	}
	return 0, false
}
