// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// serve responds as the hypervisor does, from a map that info-set changes.
func serve(t *testing.T, values map[string]string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sock")
	listener, err := net.Listen("unix", path)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			request, _ := io.ReadAll(conn)
			_, _ = io.WriteString(conn, reply(values, string(request)))
			_ = conn.Close()
		}
	}()
	return path
}

func reply(values map[string]string, request string) string {
	verb, rest, _ := strings.Cut(request, " ")
	if verb == "info-set" {
		key, value, _ := strings.Cut(rest, " ")
		values[key] = value
		return "1"
	}
	if value, ok := values[rest]; ok {
		return "1" + value
	}
	return "0"
}

func TestARequestIsAnswered(t *testing.T) {
	g := NewWithT(t)
	sock := serve(t, map[string]string{"guestinfo.metadata": "instance-id: \x00binary\n", "guestinfo.empty": ""})

	g.Expect(exchange(sock, "info-get guestinfo.metadata")).To(BeEquivalentTo("instance-id: \x00binary\n"))
	g.Expect(exchange(sock, "info-get guestinfo.empty")).To(BeEmpty())
	g.Expect(exchange(sock, "info-set guestinfo.userdata ---")).To(BeEmpty())
	g.Expect(exchange(sock, "info-get guestinfo.userdata")).To(BeEquivalentTo("---"))
}

func TestAValueOfOneMebibyteArrivesComplete(t *testing.T) {
	g := NewWithT(t)
	value := strings.Repeat("x", 1<<20)
	sock := serve(t, map[string]string{"guestinfo.userdata": value})

	g.Expect(exchange(sock, "info-get guestinfo.userdata")).To(HaveLen(len(value)))
}

func TestAnUnknownKeyIsRejectedWithVMwaresMessage(t *testing.T) {
	g := NewWithT(t)

	_, err := exchange(serve(t, nil), "info-get guestinfo.unknown")

	g.Expect(err).To(MatchError("No value found"))
}

func TestAMissingHypervisorIsReported(t *testing.T) {
	g := NewWithT(t)

	_, err := exchange(filepath.Join(t.TempDir(), "sock"), "info-get guestinfo.metadata")

	g.Expect(err).To(MatchError(ContainSubstring("asking the hypervisor")))
}
