// SPDX-License-Identifier: Apache-2.0

package guestinfo

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"sync"
)

// MaxValueSize is the maximum size of an encoded value in bytes, after gzip and base64. VCD has an undocumented limit
// of 64 KB for a value of a VM's extra configuration (see CAPVCD's pull request 656). Messages between a guest and its
// hypervisor are limited to 64 KiB including their overhead (GUESTMSG_MAX_IN_SIZE of open-vm-tools; VMware's Guest SDK
// guide recommends 63 K). The bootstrap data of a kubeadm control plane needs about 15 KiB of it.
const MaxValueSize = 63 * 1024

// maxMetadata limits the size of decompressed metadata, because other tools may have written it. Metadata of this
// package is far smaller.
const maxMetadata = 1 << 20

// Names of the encoding gzip+base64: cloud-init and Ignition use different ones.
const (
	encodingCloudInit = "gzip+base64"
	encodingIgnition  = "gz+base64"
)

// A TooLargeError means that a value does not fit into the extra configuration of a VM.
type TooLargeError struct {
	Key   string // extra configuration key; empty if unknown
	Size  int    // bytes after gzip and base64
	Limit int    // MaxValueSize
}

// Error returns the name and the size of the value, the limit, and the remedy.
func (e *TooLargeError) Error() string {
	what := e.Key
	if what == "" {
		what = "bootstrap data"
	}
	return fmt.Sprintf("%s has %d bytes after compression, the limit is %d: add large files to the VM template, or download them in the machine",
		what, e.Size, e.Limit)
}

func checkValue(key, value string) error {
	if len(value) > MaxValueSize {
		return &TooLargeError{Key: key, Size: len(value), Limit: MaxValueSize}
	}
	return nil
}

// decode decodes the value of a guestinfo key. The encoding has one of the names that cloud-init supports.
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

// writers are gzip writers for reuse. A new one allocates 800 KiB, and the data of each machine is encoded several times.
var writers = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestCompression) // the level is valid
	return w
}}

// encode compresses data with gzip and returns it in base64. The gzip header contains neither time nor name. Equal data
// therefore results in an equal value, and the next reconcile detects no change.
func encode(data []byte) string {
	var buf bytes.Buffer
	w, _ := writers.Get().(*gzip.Writer)
	defer writers.Put(w)
	w.Reset(&buf)
	_, _ = w.Write(data) // writes to a buffer do not fail
	_ = w.Close()
	return base64.StdEncoding.EncodeToString(buf.Bytes())
}
