// SPDX-License-Identifier: Apache-2.0

package hypervisor_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/testtime"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/hypervisor"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

var (
	imagesDir = flag.String("images", "", "folder of images; default: where make node-image writes them")
	victim    = flag.String("victim", "", "state folder of TestVictim, which is run by TestAKilledSimulatorLeavesNothing")
	rounds    = flag.Int("rounds", 1, "how often TestNothingIsLeft creates and deletes a VM")
)

func TestMain(m *testing.M) { testtime.Main(m) }

// A site is a simulator whose VMs boot, with a logged-in client.
type site struct {
	*WithT

	sim        *vcdsim.Simulator
	hypervisor *hypervisor.Hypervisor
	dir        string
	http       *http.Client
	token      string
}

// images returns the folder of images and the name of one of them. It skips the test if there are none or none can
// boot.
func images(t *testing.T) (dir, name string) {
	t.Helper()
	if testing.Short() {
		t.Skip("it boots VMs")
	}
	err := hypervisor.Check(stateDir(t))
	if missing := (*hypervisor.MissingError)(nil); errors.As(err, &missing) {
		t.Skip(missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir = *imagesDir
	if cache, err := os.UserCacheDir(); dir == "" && err == nil {
		dir = filepath.Join(cache, "cluster-api-provider-vcd", "nodes")
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(found) == 0 {
		t.Skipf("no images in %q: run make node-image", dir)
	}
	slices.Sort(found)
	return dir, strings.TrimSuffix(filepath.Base(found[len(found)-1]), ".json")
}

// stateDir creates a folder. The path of t.TempDir is too long for socket addresses.
func stateDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "vms-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func start(t *testing.T, dir string) *site {
	t.Helper()
	from, name := images(t)
	s := &site{WithT: NewWithT(t), dir: dir}
	var err error
	s.hypervisor, err = hypervisor.New(hypervisor.Options{Images: from, Dir: dir})
	s.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { s.Expect(s.hypervisor.Close()).To(Succeed()) })

	model := vcdsim.K8sTenant()
	model.Orgs[1].Catalogs[0].Templates[0].Name = name
	listener, err := s.hypervisor.Listen(inside)
	s.Expect(err).NotTo(HaveOccurred())
	s.sim, err = vcdsim.New(vcdsim.Config{Model: model, Seed: 1, Guest: s.hypervisor, Further: []net.Listener{listener}})
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.sim.Start()).To(Succeed())
	t.Cleanup(func() { s.Expect(s.sim.Close()).To(Succeed()) })
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.sim.CA())
	s.http = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}, Timeout: time.Minute}
	req := s.request(http.MethodPost, "/cloudapi/1.0.0/sessions", "")
	req.SetBasicAuth("capvcd@acme", "password")
	res, err := s.http.Do(req)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(res.Body.Close()).To(Succeed())
	s.token = res.Header.Get("X-VMWARE-VCLOUD-ACCESS-TOKEN")
	return s
}

func (s *site) request(method, path, body string) *http.Request {
	if !strings.HasPrefix(path, "https://") {
		path = s.sim.URL() + path
	}
	req, err := http.NewRequest(method, path, strings.NewReader(body))
	s.Expect(err).NotTo(HaveOccurred())
	req.Header.Set("Accept", "application/*;version=37.2")
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	return req
}

func (s *site) call(method, path, body string) *xmltree.Node {
	res, err := s.http.Do(s.request(method, path, body))
	s.Expect(err).NotTo(HaveOccurred())
	data, err := io.ReadAll(res.Body)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(res.Body.Close()).To(Succeed())
	s.Expect(res.StatusCode).To(BeNumerically("<", http.StatusMultipleChoices), "%s %s: %s", method, path, data)
	tree, err := xmltree.Parse(data)
	s.Expect(err).NotTo(HaveOccurred())
	return tree
}

// ok sends a write and waits for its task.
func (s *site) ok(method, path, body string) *xmltree.Node {
	answer := s.call(method, path, body)
	task := answer
	if task.Name != "Task" {
		task = task.At("Tasks", "Task")
	}
	s.Eventually(func() string { return s.call(http.MethodGet, task.Attr("href"), "").Attr("status") }).
		Should(Equal("success"), "%s %s", method, path)
	return answer
}

const xmlns = `xmlns="http://www.vmware.com/vcloud/v1.5" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1" xmlns:vmw="http://www.vmware.com/schema/ovf"`

// vm creates a vApp with one VM on the first network and returns the path of both.
func (s *site) vm(name, mode string) (vapp, vm string) {
	org := s.sim.State().Model.Orgs[1]
	network := org.VDCs[0].Networks[0]
	answer := s.ok(http.MethodPost, "/api/vdc/"+org.VDCs[0].ID+"/action/composeVApp", `<ComposeVAppParams `+xmlns+` name="`+
		name+`" deploy="false" powerOn="false"><InstantiationParams><NetworkConfigSection><ovf:Info/><NetworkConfig networkName="`+network.Name+
		`"><Configuration><ParentNetwork href="`+s.sim.URL()+"/api/network/"+network.ID+
		`"/><FenceMode>bridged</FenceMode></Configuration></NetworkConfig></NetworkConfigSection></InstantiationParams>`+
		`<SourcedItem><Source href="`+s.sim.URL()+"/api/vAppTemplate/vm-"+org.Catalogs[0].Templates[0].VMs[0].ID+
		`"/><VmGeneralParams><Name>`+name+`</Name></VmGeneralParams><InstantiationParams><NetworkConnectionSection><ovf:Info/>`+
		`<PrimaryNetworkConnectionIndex>0</PrimaryNetworkConnectionIndex><NetworkConnection network="`+network.Name+
		`"><NetworkConnectionIndex>0</NetworkConnectionIndex><IsConnected>true</IsConnected><IpAddressAllocationMode>`+mode+
		`</IpAddressAllocationMode></NetworkConnection></NetworkConnectionSection></InstantiationParams></SourcedItem>`+
		`</ComposeVAppParams>`)
	return strings.TrimPrefix(answer.Attr("href"), s.sim.URL()), "/api/vApp/vm-" + s.state(name).ID
}

// inform sets guestinfo, as the provider does.
func (s *site) inform(vm string, keys map[string]string) {
	body := `<Vm ` + xmlns + `><ovf:VirtualHardwareSection>`
	for key, value := range keys {
		body += `<vmw:ExtraConfig vmw:key="guestinfo.` + key + `" vmw:value="` +
			base64.StdEncoding.EncodeToString([]byte(value)) + `"/><vmw:ExtraConfig vmw:key="guestinfo.` + key +
			`.encoding" vmw:value="base64"/>`
	}
	s.ok(http.MethodPost, vm+"/action/reconfigureVm", body+`</ovf:VirtualHardwareSection></Vm>`)
}

func (s *site) state(name string) vcdsim.VM {
	for _, vm := range s.sim.State().VMs {
		if vm.Name == name {
			return vm
		}
	}
	s.Expect(name).To(Equal("the name of a VM"))
	return vcdsim.VM{}
}
