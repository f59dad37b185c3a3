// SPDX-License-Identifier: Apache-2.0

package capvcd

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// A storageDriver calls VMware's CSI driver like its sidecar containers.
type storageDriver struct {
	*WithT

	t          *testing.T
	pod        *pod
	controller csi.ControllerClient
}

func newStorageDriver(t *testing.T, p *pod, address string) *storageDriver {
	t.Helper()
	g := NewWithT(t)
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = connection.Close() })
	return &storageDriver{
		WithT:      g,
		t:          t,
		pod:        p,
		controller: csi.NewControllerClient(connection),
	}
}

// mounted returns the volume capability that the tests request.
func mounted() *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: "ext4"}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
}

// restart restarts the driver, because it reads its Secret only at startup.
func (d *storageDriver) restart() {
	d.t.Helper()
	d.pod.stop()
	d.pod.start()
}

func (d *storageDriver) create(volume string) {
	d.t.Helper()
	d.eventually(func() error {
		_, err := d.controller.CreateVolume(d.t.Context(), &csi.CreateVolumeRequest{
			Name:               volume,
			CapacityRange:      &csi.CapacityRange{RequiredBytes: 1 << 30},
			VolumeCapabilities: []*csi.VolumeCapability{mounted()},
		})
		return err
	})
}

func (d *storageDriver) attach(volume, node string) {
	d.t.Helper()
	d.eventually(func() error {
		_, err := d.controller.ControllerPublishVolume(d.t.Context(), &csi.ControllerPublishVolumeRequest{
			VolumeId:         volume,
			NodeId:           node,
			VolumeCapability: mounted(),
		})
		return err
	})
}

func (d *storageDriver) detach(volume, node string) {
	d.t.Helper()
	d.eventually(func() error {
		_, err := d.controller.ControllerUnpublishVolume(d.t.Context(), &csi.ControllerUnpublishVolumeRequest{
			VolumeId: volume,
			NodeId:   node,
		})
		return err
	})
}

// eventually retries a request until it succeeds, because the driver may be starting, or VCD may be busy.
func (d *storageDriver) eventually(request func() error) {
	d.t.Helper()
	d.Eventually(request, timeout, "500ms").Should(Succeed())
}
