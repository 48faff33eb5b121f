// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"golang.org/x/time/rate"
)

const (
	mergePatch     = "application/merge-patch+json"
	strategicPatch = "application/strategic-merge-patch+json"
)

// A client of the API server that waits between calls as client-go does unless told otherwise.
type client struct {
	server  string
	token   string
	http    *http.Client
	limiter *rate.Limiter
}

type apiError struct {
	code int
	body string
}

func (e *apiError) Error() string { return fmt.Sprintf("%d: %s", e.code, e.body) }

func isConflict(err error) bool {
	e, ok := err.(*apiError)
	return ok && e.code == http.StatusConflict
}

func newClient(kubeconfig string, limited bool) *client {
	var config struct {
		Clusters []struct {
			Cluster struct {
				Server string `json:"server"`
				CA     string `json:"certificate-authority"`
			} `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			User struct {
				Token string `json:"token"`
			} `json:"user"`
		} `json:"users"`
	}
	text, err := os.ReadFile(kubeconfig)
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	if err != nil {
		log.Fatalf("--kubeconfig: %v", err)
	}
	ca, err := os.ReadFile(config.Clusters[0].Cluster.CA)
	if err != nil {
		log.Fatalf("--kubeconfig: %v", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	c := &client{
		server:  config.Clusters[0].Cluster.Server,
		token:   config.Users[0].User.Token,
		limiter: rate.NewLimiter(rate.Inf, 0),
		http: &http.Client{
			Timeout:   10 * time.Second,
			Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, MaxIdleConnsPerHost: 8},
		},
	}
	if limited {
		c.limiter = rate.NewLimiter(5, 10)
	}
	return c
}

// One request; a 2xx answer is decoded into `into` unless that is nil.
func (c *client) do(method, path, contentType string, body, into any) error {
	c.limiter.Wait(context.Background())
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reader = bytes.NewReader(text)
	}
	request, err := http.NewRequest(method, c.server+path, reader)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		return &apiError{response.StatusCode, string(text)}
	}
	if into != nil {
		return json.Unmarshal(text, into)
	}
	return nil
}

// Pods, as far as plugins look at them.

type meta struct {
	Name            string            `json:"name"`
	Namespace       string            `json:"namespace"`
	UID             string            `json:"uid"`
	ResourceVersion string            `json:"resourceVersion"`
	Created         time.Time         `json:"creationTimestamp"`
	Deleted         *time.Time        `json:"deletionTimestamp"`
	Annotations     map[string]string `json:"annotations"`
	Labels          map[string]string `json:"labels"`
}

type container struct {
	Name      string `json:"name"`
	Resources struct {
		Limits map[string]string `json:"limits"`
	} `json:"resources"`
}

type pod struct {
	whole    json.RawMessage
	Metadata meta `json:"metadata"`
	Spec     struct {
		NodeName       string      `json:"nodeName"`
		InitContainers []container `json:"initContainers"`
		Containers     []container `json:"containers"`
	} `json:"spec"`
	Status struct {
		Phase             string `json:"phase"`
		Reason            string `json:"reason"`
		ContainerStatuses []struct {
			State struct {
				Running *struct{} `json:"running"`
			} `json:"state"`
		} `json:"containerStatuses"`
	} `json:"status"`
}

func (p *pod) UnmarshalJSON(text []byte) error {
	type plain pod
	p.whole = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(p))
}

type object struct {
	Metadata meta `json:"metadata"`
}

func (p *pod) path() string {
	return "/api/v1/namespaces/" + p.Metadata.Namespace + "/pods/" + p.Metadata.Name
}

// Plugins' amounts are whole numbers, and tests write them so.
func (c *container) limit(resource string) int64 {
	value, _ := strconv.ParseInt(c.Resources.Limits[resource], 10, 64)
	return value
}

func (c *client) pods(selector string) ([]pod, error) {
	var list struct {
		Items []pod `json:"items"`
	}
	path := "/api/v1/pods"
	if selector != "" {
		path += "?" + url.Values{"fieldSelector": {selector}}.Encode()
	}
	err := c.do("GET", path, "", nil, &list)
	return list.Items, err
}

func (c *client) pod(namespace, name string) (*pod, error) {
	var found pod
	err := c.do("GET", "/api/v1/namespaces/"+namespace+"/pods/"+name, "", nil, &found)
	return &found, err
}

func (c *client) getNode(name string) (*object, error) {
	var found object
	err := c.do("GET", "/api/v1/nodes/"+name, "", nil, &found)
	return &found, err
}

func annotations(values map[string]any) map[string]any {
	return map[string]any{"metadata": map[string]any{"annotations": values}}
}

func (c *client) annotate(p *pod, values map[string]any) error {
	return c.do("PATCH", p.path(), strategicPatch, annotations(values), nil)
}

// PUT of the whole pod, with more annotations.
func (c *client) replace(p *pod, values map[string]any) error {
	var whole map[string]any
	if err := json.Unmarshal(p.whole, &whole); err != nil {
		return err
	}
	metadata := whole["metadata"].(map[string]any)
	held, _ := metadata["annotations"].(map[string]any)
	if held == nil {
		held = map[string]any{}
		metadata["annotations"] = held
	}
	for key, value := range values {
		held[key] = value
	}
	return c.do("PUT", p.path(), "application/json", whole, nil)
}
