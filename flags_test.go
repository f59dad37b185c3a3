// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/options"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/version"
)

func TestTheManagerExitsBeforeItStarts(t *testing.T) {
	tests := []struct {
		name   string
		args   []string
		status int
		stdout string
		stderr []string
	}{
		{name: "help is requested", args: []string{"--help"}, stdout: "--vcd-in-flight"},
		{name: "short help is requested", args: []string{"-h"}, stdout: "Runtime controls:"},
		{name: "the version is requested", args: []string{"--version"}, stdout: version.Long()},
		{
			name:   "an unknown flag",
			args:   []string{"--vcd-bursts=1"},
			status: 2,
			stderr: []string{"unknown flag: --vcd-bursts", "--help"},
		},
		{name: "an argument that is not a flag", args: []string{"start"}, status: 2, stderr: []string{`"start"`}},
		{
			name:   "all problems at once",
			args:   []string{"--vcd-burst=0", "--sync-period=-1s", "--logging-format=xml"},
			status: 2,
			stderr: []string{"--vcd-burst", "--sync-period", "Unsupported log format"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			fs := pflag.NewFlagSet("manager", pflag.ContinueOnError)
			var stdout, stderr strings.Builder

			status, end := parse(fs, options.New(fs, "capvcd-system"), tt.args, &stdout, &stderr)

			g.Expect(end).To(BeTrue())
			g.Expect(status).To(Equal(tt.status))
			g.Expect(stdout.String()).To(ContainSubstring(tt.stdout))
			for _, said := range tt.stderr {
				g.Expect(stderr.String()).To(ContainSubstring(said))
			}
		})
	}
}

func TestTheManagerStartsWithItsDefaults(t *testing.T) {
	g := NewWithT(t)
	fs := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	var said strings.Builder

	_, end := parse(fs, options.New(fs, "capvcd-system"), nil, &said, &said)

	g.Expect(end).To(BeFalse(), said.String())
}
