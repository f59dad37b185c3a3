// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"

	. "github.com/onsi/gomega"
)

// A storageDriver creates and attaches disks as the VCD user of the manager.
type storageDriver struct {
	site  *site
	http  *http.Client
	token string
}

// storageDriver logs in, and returns a driver with the session.
func (s *site) storageDriver() *storageDriver {
	s.t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.CA())
	p := &storageDriver{
		site: s,
		http: &http.Client{Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true,
		}},
	}
	p.token = p.post("/cloudapi/1.0.0/sessions", "").Get("X-VMWARE-VCLOUD-ACCESS-TOKEN")
	s.g.Expect(p.token).NotTo(BeEmpty())
	return p
}

// post repeats a request until VCD is not busy, and returns the header of the response.
func (p *storageDriver) post(path, body string) (header http.Header) {
	p.site.t.Helper()
	p.site.g.Eventually(func() (err error) {
		header, err = p.do(path, body)
		return err
	}, timeout, "250ms").Should(Succeed())
	return header
}

func (p *storageDriver) do(path, body string) (http.Header, error) {
	s := p.site
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.URL()+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/*+json;version=39.0")
	if p.token == "" {
		req.SetBasicAuth("capvcd@acme", s.password())
	} else {
		req.Header.Set("Authorization", "Bearer "+p.token)
		req.Header.Set("Accept", "application/*+xml;version=39.0")
		req.Header.Set("Content-Type", "application/*+xml")
	}
	res, err := p.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	content, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("POST %s: %s: %s", path, res.Status, content)
	}
	return res.Header, err
}

const vcloud = `xmlns="http://www.vmware.com/vcloud/v1.5"`

// attachDisk attaches an independent disk to a worker, as a CSI driver does.
func (l *testCluster) attachDisk() {
	l.t.Helper()
	_, vm := l.anyWorker()
	p := l.storageDriver()
	state := l.State()
	p.post("/api/vdc/"+state.VApps[0].VDCID+"/disk",
		`<DiskCreateParams `+vcloud+`><Disk name="data" sizeMb="1024"/></DiskCreateParams>`)
	l.g.Eventually(func() bool { return len(l.State().Disks) == 1 && l.State().Disks[0].Status == 1 },
		timeout).Should(BeTrue())
	disk := l.State().Disks[0].ID
	p.post("/api/vApp/vm-"+vm+"/disk/action/attach",
		`<DiskAttachOrDetachParams `+vcloud+`><Disk href="`+l.URL()+`/api/disk/`+disk+`"/></DiskAttachOrDetachParams>`)
	l.g.Eventually(func() []string { return l.State().Disks[0].AttachedTo }, timeout).Should(ConsistOf(vm))
}
