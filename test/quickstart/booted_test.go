// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"testing"

	. "github.com/onsi/gomega"
)

var realNodes = flag.Bool("real-nodes", false, "boot VMs that become real nodes; needs root and make node-image")

func TestCloudControllerManagerVersionIsThatOfTheNodeImage(t *testing.T) {
	g := NewWithT(t)
	img := bootedImage{images: []string{
		"registry.example.com:5000/a/manager:v3", "registry.example.com:5000/a/cloud-provider-for-cloud-director:v3.1.0",
	}}
	g.Expect(img.managerArgs()).To(Equal([]string{"--cloud-provider-version=v3.1.0"}))
	g.Expect(bootedImage{}.managerArgs()).To(BeEmpty())
}
