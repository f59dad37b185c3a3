// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/version"
)

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Prints the version of vcdctl",
		Long:  "Prints the version of vcdctl, with commit, Go version and platform. It needs no access to VCD.",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return p.version() },
	}
}

func (p *program) version() error {
	if p.output == "json" {
		return p.printJSON(build{
			Version:  version.String(),
			Commit:   version.Commit,
			Go:       runtime.Version(),
			Platform: runtime.GOOS + "/" + runtime.GOARCH,
		})
	}
	_, err := fmt.Fprintln(p.out, version.Long())
	return err
}

// A build identifies the program, for scripts.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Go       string `json:"goVersion"`
	Platform string `json:"platform"`
}
