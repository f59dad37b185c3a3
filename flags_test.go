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
		{"help is requested", []string{"--help"}, 0, "--vcd-in-flight", nil},
		{"short help is requested", []string{"-h"}, 0, "Runtime controls:", nil},
		{"the version is requested", []string{"--version"}, 0, version.Long(), nil},
		{
			"an unknown flag",
			[]string{"--vcd-bursts=1"},
			2,
			"",
			[]string{"unknown flag: --vcd-bursts", "--help"},
		},
		{"an argument that is not a flag", []string{"start"}, 2, "", []string{`"start"`}},
		{
			"all problems at once",
			[]string{"--vcd-burst=0", "--sync-period=-1s", "--logging-format=xml"},
			2,
			"",
			[]string{"--vcd-burst", "--sync-period", "Unsupported log format"},
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
