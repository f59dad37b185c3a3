// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testtime"
)

func TestMain(m *testing.M) { testtime.Main(m) }

// vm creates the files of a VM with a console in the state folder.
func vm(t *testing.T, name, console string) (file string) {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	t.Setenv("VCDSIM_NODES_DIR", dir)
	folder := filepath.Join(dir, "vms", "id")
	g.Expect(os.MkdirAll(folder, 0o750)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(folder, "name"), []byte(name+"\n"), 0o600)).To(Succeed())
	file = filepath.Join(folder, "console.log")
	g.Expect(os.WriteFile(file, []byte(console), 0o600)).To(Succeed())
	return file
}

func TestTheConsoleIsPrinted(t *testing.T) {
	vm(t, "node", "Welcome\n")
	g := NewWithT(t)
	var out bytes.Buffer
	g.Expect(vmCommand(t.Context(), []string{"console", "node"}, nil, &out)).To(Succeed())
	g.Expect(out.String()).To(Equal("Welcome\n"))
}

func TestTheConsoleIsFollowed(t *testing.T) {
	file := vm(t, "node", "Welcome\n")
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read, write, err := os.Pipe()
	g.Expect(err).NotTo(HaveOccurred())
	done := make(chan error, 1)
	go func() { done <- vmCommand(ctx, []string{"console", "--follow", "node"}, nil, write) }()
	line := make([]byte, 8)
	g.Expect(read.Read(line)).To(Equal(8))

	appended, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(appended.WriteString("to more\n")).To(Equal(8))
	g.Expect(appended.Close()).To(Succeed())
	g.Expect(read.Read(line)).To(Equal(8))
	g.Expect(string(line)).To(Equal("to more\n"))
	cancel()
	g.Eventually(done).Should(Receive(Succeed()))
}

func TestAPoweredOffVMHasNoShell(t *testing.T) {
	vm(t, "node", "")
	g := NewWithT(t)
	g.Expect(vmCommand(t.Context(), []string{"shell", "node"}, nil, nil)).To(MatchError("VM node is off"))
	g.Expect(vmCommand(t.Context(), []string{"shell", "other"}, nil, nil)).
		To(MatchError("VM other does not exist; existing VMs: node"))
}

func TestVMArgumentsAreValidated(t *testing.T) {
	for _, args := range [][]string{
		{"console"},
		{"console", "a", "b"},
		{"console", "--follow"},
		{"shell"},
		{"shell", "a", "b"},
		{"exec", "a"},
	} {
		NewWithT(t).Expect(vmCommand(t.Context(), args, nil, nil)).To(MatchError(Or(Equal(errUsage.Error()),
			ContainSubstring("VM"))), "%v", args)
	}
}
