// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testtime"
)

func TestMain(m *testing.M) {
	if address := os.Getenv(routerEnv); address != "" {
		if err := runRouter(address); err != nil {
			fmt.Fprintln(os.Stderr, "router:", err)
			os.Exit(1)
		}
		return
	}
	testtime.Main(m)
}

// terminal opens a pseudo terminal. Data that is written to keys is the keyboard input of screen.
func terminal(t *testing.T) (keys, screen *os.File) {
	t.Helper()
	g := NewWithT(t)
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = keys.Close() })
	g.Expect(unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0)).To(Succeed())
	number, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	g.Expect(err).NotTo(HaveOccurred())
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = screen.Close() })
	return keys, screen
}

func TestCtrlCIsAKeyWhileTheClusterIsUp(t *testing.T) {
	g := NewWithT(t)
	keys, screen := terminal(t)
	before, err := unix.IoctlGetTermios(int(screen.Fd()), unix.TCGETS)
	g.Expect(err).NotTo(HaveOccurred())

	pressed, restore := interrupts(screen)
	during, err := unix.IoctlGetTermios(int(screen.Fd()), unix.TCGETS)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(during.Lflag&unix.ISIG).To(BeZero(), "Ctrl-C sends no signal, which make would also receive")
	_, err = keys.WriteString("x")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pressed).NotTo(BeClosed())
	_, err = keys.WriteString("\x03")
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(pressed).Should(BeClosed())

	restore()
	g.Expect(unix.IoctlGetTermios(int(screen.Fd()), unix.TCGETS)).To(Equal(before))
}

func TestCtrlCIsASignalWithoutATerminal(t *testing.T) {
	g := NewWithT(t)
	r, w, err := os.Pipe()
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		_ = r.Close()
		_ = w.Close()
	})
	pressed, restore := interrupts(r)
	_, err = w.WriteString("\x03")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pressed).NotTo(BeClosed())
	restore()
}
