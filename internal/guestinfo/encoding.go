// SPDX-License-Identifier: Apache-2.0

package guestinfo

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
)

// MaxValueSize is how many bytes an encoded value may have. VCD has an undocumented limit of 64 KB for a value
// of a VM's extra configuration (CAPVCD's pull request 656 met it), and messages between a guest and its
// hypervisor have one of 64 KiB with what goes around the value (GUESTMSG_MAX_IN_SIZE of open-vm-tools;
// VMware's Guest SDK guide recommends 63 K). What counts is the size after gzip and base64. The data of
// a kubeadm control plane has about 15 KiB of it.
const MaxValueSize = 63 * 1024

// maxMetadata bounds what is read of metadata that another may have written. Ours is far smaller.
const maxMetadata = 1 << 20

// The two readers have different names for base64 of gzip.
const (
	encodingCloudInit = "gzip+base64"
	encodingIgnition  = "gz+base64"
)

// A TooLargeError means that a value does not fit into the extra configuration of a VM.
type TooLargeError struct {
	Key   string // extra configuration key; empty if it is not known yet
	Size  int    // bytes after gzip and base64
	Limit int    // MaxValueSize
}

// Error describes what is too large, by how much, and the remedy.
func (e *TooLargeError) Error() string {
	what := e.Key
	if what == "" {
		what = "bootstrap data"
	}
	return fmt.Sprintf("%s has %d bytes after compression, the limit is %d: add large files to the VM template, "+
		"or download them in the machine",
		what, e.Size, e.Limit)
}

// ignitionReserve is how much of a value is left for the files of a machine with ten NICs beside its bootstrap data.
const ignitionReserve = 4 * 1024

// Check returns nil if bootstrap data can be used and fits, or a TooLargeError. It needs no VM, so it can be called before
// anything is created.
func Check(format Format, data []byte) error {
	if err := validateBootstrapData(format, data); err != nil {
		return err
	}
	if format != FormatIgnition {
		return checkValue("", encode(data))
	}
	config, err := renderIgnition(Input{BootstrapData: data})
	if err != nil {
		return err
	}
	return checkValue("", encode(config)+strings.Repeat("=", ignitionReserve))
}

func checkValue(key, value string) error {
	if len(value) > MaxValueSize {
		return &TooLargeError{Key: key, Size: len(value), Limit: MaxValueSize}
	}
	return nil
}

// decode returns what a value of a guestinfo key holds in an encoding, by the names that cloud-init knows.
func decode(value, encoding string) ([]byte, error) {
	switch encoding {
	case "":
		return []byte(value), nil
	case "base64", "b64", encodingCloudInit, "gz+b64":
	default:
		return nil, fmt.Errorf("encoding %q is unknown", encoding)
	}
	data, err := base64.StdEncoding.DecodeString(value)
	if err != nil || !strings.HasPrefix(encoding, "gz") {
		return data, err
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, maxMetadata))
}

// encode returns base64 of gzip of data. The gzip header carries neither time nor name, so equal data gives an
// equal value and a second reconcile finds nothing to change.
func encode(data []byte) string {
	var buf bytes.Buffer
	// Neither a valid level nor a write to a buffer can fail.
	w, _ := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	_, _ = w.Write(data)
	_ = w.Close()
	return base64.StdEncoding.EncodeToString(buf.Bytes())
}
