// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"runtime"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/version"
)

func TestVersionNeedsNoSite(t *testing.T) {
	s := newShell(t)

	s.Expect(s.run(t, "version")).To(Equal(exitOK), s.errors.String())

	s.Expect(s.out.String()).To(Equal(version.Long() + "\n"))
}

func TestVersionAsJSON(t *testing.T) {
	s := newShell(t)

	s.Expect(s.run(t, "version", "-o", "json")).To(Equal(exitOK), s.errors.String())

	var printed build
	s.Expect(json.Unmarshal(s.out.Bytes(), &printed)).To(Succeed())
	s.Expect(printed.Version).To(Equal(version.String()))
	s.Expect(printed.Platform).To(Equal(runtime.GOOS + "/" + runtime.GOARCH))
}

func TestVersionTakesNoArguments(t *testing.T) {
	s := newShell(t)

	s.Expect(s.run(t, "version", "now")).To(Equal(exitError))

	s.Expect(s.errors.String()).To(ContainSubstring(`unknown command "now"`))
}
