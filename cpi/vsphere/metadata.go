// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"net/netip"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// metadataKey is the key of cloud-init's metadata in a VM. metadataEncodingKey is the key of its encoding.
	metadataKey         = "guestinfo.metadata"
	metadataEncodingKey = "guestinfo.metadata.encoding"
	// maxMetadata limits the size of the unpacked metadata, in bytes.
	maxMetadata = 1 << 20
)

// staticAddresses returns the addresses in cloud-init's configuration, sorted by interface name.
func staticAddresses(metadata, encoding string) []netip.Addr {
	var outer struct {
		Network  yaml.Node `yaml:"network"`
		Encoding string    `yaml:"network.encoding"`
	}
	if yaml.Unmarshal(unpack(metadata, encoding), &outer) != nil {
		return nil
	}
	network := outer.Network
	if network.Kind == yaml.ScalarNode {
		var document yaml.Node
		if yaml.Unmarshal(unpack(network.Value, outer.Encoding), &document) != nil || len(document.Content) == 0 {
			return nil
		}
		network = *document.Content[0]
	}
	type ethernets map[string]struct {
		Addresses []string `yaml:"addresses"`
	}
	var config struct {
		Ethernets ethernets `yaml:"ethernets"`
		Network   struct {
			Ethernets ethernets `yaml:"ethernets"`
		} `yaml:"network"`
	}
	if network.Decode(&config) != nil {
		return nil
	}
	all := config.Ethernets
	if all == nil {
		all = config.Network.Ethernets
	}
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	var out []netip.Addr
	for _, name := range names {
		out = append(out, parseAddresses(all[name].Addresses)...)
	}
	return out
}

func parseAddresses(texts []string) []netip.Addr {
	var out []netip.Addr
	for _, text := range texts {
		text, _, _ = strings.Cut(text, "/")
		if a, err := netip.ParseAddr(text); err == nil {
			out = append(out, a.Unmap())
		}
	}
	return out
}

// unpack decodes and decompresses a text. If no encoding is given, it is detected.
func unpack(text, encoding string) []byte {
	data := []byte(text)
	if encoding == "" || strings.Contains(encoding, "b64") || strings.Contains(encoding, "base64") ||
		strings.HasPrefix(encoding, "gz") {
		compact := strings.Join(strings.Fields(text), "")
		if decoded, err := base64.StdEncoding.DecodeString(compact); err == nil {
			data = decoded
		}
	}
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return data
	}
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil
	}
	unzipped, err := io.ReadAll(io.LimitReader(reader, maxMetadata))
	if err != nil {
		return nil
	}
	return unzipped
}
